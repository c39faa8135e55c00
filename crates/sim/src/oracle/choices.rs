//! The choices of one reading of the documents: a tape whose recorded choices are repeated before new ones are added.

#[derive(Debug, Clone, Default)]
pub(super) struct Choices {
    tape: Vec<u8>,
    made: usize,
    untried: Vec<Vec<u8>>,
}

/// Worlds with the same facts are equal, regardless of the choices that led to them.
impl PartialEq for Choices {
    fn eq(&self, _: &Choices) -> bool {
        true
    }
}

impl Choices {
    pub(super) fn along(tape: Vec<u8>) -> Choices {
        Choices { tape, made: 0, untried: Vec::new() }
    }

    /// One of `0..among`. The first time it is 0; the others are noted as untried.
    pub(super) fn choose(&mut self, among: u8) -> u8 {
        if self.made == self.tape.len() {
            for other in 1..among {
                let mut tape = self.tape.clone();
                tape.push(other);
                self.untried.push(tape);
            }
            self.tape.push(0);
        }
        self.made += 1;
        self.tape[self.made - 1]
    }

    pub(super) fn take_untried(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.untried)
    }
}
