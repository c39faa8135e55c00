//! The form of a value in a URL. A client writes hosts in lower case and names in other alphabets in punycode, and
//! reports and sends the URL in that form.

use crate::rules::is_guessable;
use url::Url;

/// Maximum length of a host name.
const HOST_MAX: usize = 253;

/// Maximum length of a URL; servers refuse longer ones.
const URL_MAX: usize = 8 * 1024;

/// Returns the value as a URL, or as the host of a URL or a part of it; `None` if that is the value itself or can be
/// guessed.
pub(crate) fn url_form(value: &str) -> Option<String> {
    let form = normalize_url(value).or_else(|| normalize_host(value))?;
    (form != value && !is_guessable(&form)).then_some(form)
}

fn normalize_url(value: &str) -> Option<String> {
    if value.len() > URL_MAX {
        return None;
    }
    let url = Url::parse(value).ok().filter(Url::has_host)?;
    let mut form = url.to_string();
    // A path may follow.
    if url.path() == "/" && form.ends_with('/') {
        form.pop();
    }
    Some(form)
}

fn normalize_host(value: &str) -> Option<String> {
    // These characters end the host or are left out of it, and the rest would be only a part of the value.
    if value.len() > HOST_MAX
        || value.chars().any(|letter| letter.is_whitespace() || "/\\?#@:".contains(letter))
    {
        return None;
    }
    Url::parse(&format!("http://{value}/")).ok()?.host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: Option<&str>) {
        assert_eq!(url_form(value).as_deref(), expected, "{value}");
    }

    #[test]
    fn a_host_is_in_lower_case() {
        check("Tr0ub4dor-Und", Some("tr0ub4dor-und"));
        check("Grüße-aus-Köln", Some("xn--gre-aus-kln-w6a02arc"));
        check("tr0ub4dor-und", None);
        check("Zebra%41%42c-1", Some("zebraabc-1"));
    }

    #[test]
    fn a_url_is_normalised() {
        check("https://Hooks.Example/T0/Abc", Some("https://hooks.example/T0/Abc"));
        check("https://Hooks.Example", Some("https://hooks.example"));
        check("https://hooks.example:443/a/../Key", Some("https://hooks.example/Key"));
    }

    #[test]
    fn only_hosts_have_a_url_form_and_guessable_forms_are_not_searched_for() {
        for value in ["Pass/Word-and-more", "User:Password-1", "two Words-Here", "a@B-c-d-e-f", "0xC0A80101"]
        {
            check(value, None);
        }
    }
}
