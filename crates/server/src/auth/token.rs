//! Bearer tokens: a prefix and 32 random bytes. Only their digest is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use windlass_secrets::Zeroizing;

/// Prefix that people and secret scanners recognise.
const PREFIX: &str = "wdl_";
const BYTES: usize = 32;

/// SHA-256 of a token, which is stored and looked up. The token is random and long, so a slow hash would add nothing.
pub(crate) type Digest = [u8; 32];

/// The token as a caller sends it.
pub(crate) struct Token(Zeroizing<String>);

impl Token {
    pub(crate) fn random() -> Result<Token, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        getrandom::fill(&mut *bytes)?;
        Ok(Token(Zeroizing::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(*bytes)))))
    }

    /// Parses a string with the format of a token of this server.
    #[must_use]
    pub(crate) fn read(text: &str) -> Option<Token> {
        let body = text.strip_prefix(PREFIX)?;
        let decoded = URL_SAFE_NO_PAD.decode(body).ok().map(Zeroizing::new)?;
        (decoded.len() == BYTES).then(|| Token(Zeroizing::new(text.to_owned())))
    }

    #[must_use]
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_parsed_from_its_text() {
        let token = Token::random().unwrap();
        assert_eq!(Token::read(token.text()).unwrap().digest(), token.digest());
        assert_ne!(Token::random().unwrap().digest(), token.digest());
        assert!(!format!("{token:?}").contains(&token.text()[4..]));
    }

    #[test]
    fn strings_of_another_format_are_refused() {
        let text = Token::random().unwrap().text().to_owned();
        for wrong in ["", "wdl_", &text[1..], &text[..text.len() - 1], &format!("{text}A"), "wdl_ä"] {
            assert!(Token::read(wrong).is_none(), "{wrong}");
        }
    }
}
