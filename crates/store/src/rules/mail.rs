//! Letters: each is consumed once, and answered if another process waits for the answer.

/// The row of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailFacts {
    /// Another process waits for the answer.
    pub wants_answer: bool,
    /// The letter was consumed or refused; the row keeps its answer.
    pub settled: bool,
}

/// Change of the row of a letter that is consumed or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailEnding {
    /// The row keeps the answer until it is fetched.
    Answer,
    Delete,
}

/// Returns the ending of an open letter; None for a letter that is not open.
#[must_use]
pub fn end_mail(mail: Option<MailFacts>) -> Option<MailEnding> {
    let open = mail.filter(|mail| !mail.settled)?;
    Some(if open.wants_answer { MailEnding::Answer } else { MailEnding::Delete })
}

/// Returns whether there is an answer that can be fetched.
#[must_use]
pub fn may_fetch(mail: Option<MailFacts>) -> bool {
    mail.is_some_and(|mail| mail.settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_ends_once_and_its_answer_is_fetched_once() {
        let mail = |wants_answer, settled| Some(MailFacts { wants_answer, settled });
        let cases = [
            (None, None, false),
            (mail(false, false), Some(MailEnding::Delete), false),
            (mail(true, false), Some(MailEnding::Answer), false),
            (mail(true, true), None, true),
        ];
        for (mail, ending, fetched) in cases {
            assert_eq!((end_mail(mail), may_fetch(mail)), (ending, fetched), "{mail:?}");
        }
    }
}
