//! Suggestions for names that do not exist.

/// Returns the nearest known name as a hint; all names when none is near and they are few.
#[must_use]
pub fn hint<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    match nearest(wrong, known.clone()) {
        Some(name) => Some(format!("did you mean `{name}`?")),
        None => {
            let names: Vec<String> = known.take(LISTED_MAX + 1).map(|name| format!("`{name}`")).collect();
            (1..=LISTED_MAX).contains(&names.len()).then(|| format!("known here: {}", names.join(", ")))
        }
    }
}

/// Maximum number of names that a hint lists.
const LISTED_MAX: usize = 12;

/// Longer names are not compared: the cost grows with the square of their length.
const COMPARED_MAX: usize = 100;

/// Number of names that one wrong name is compared with. Larger documents are generated, and generators make no typing
/// errors.
const CANDIDATES_MAX: usize = 500;

fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.len() > COMPARED_MAX {
        return None;
    }
    // A single letter is close to every other letter, so there is no suggestion.
    let near = match wrong.chars().count() {
        1 => 0,
        length => length.div_ceil(3),
    };
    let wrong = wrong.to_lowercase();
    // A distance is at least the difference in length, which is cheaper to compute.
    let length = wrong.chars().count();
    known
        .take(CANDIDATES_MAX)
        .filter(|name| name.len() <= COMPARED_MAX && name.chars().count().abs_diff(length) <= near)
        .map(|name| (strsim::damerau_levenshtein(&wrong, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wrong: &str, known: &[&str], expected: Option<&str>) {
        assert_eq!(hint(wrong, known.iter().copied()).as_deref(), expected);
    }

    #[test]
    fn the_nearest_name_is_offered_and_else_all_of_few() {
        check("shp", &["ship", "stop"], Some("did you mean `ship`?"));
        check("Ship", &["ship"], Some("did you mean `ship`?"));
        check("x", &["ship", "stop"], Some("known here: `ship`, `stop`"));
        check("x", &[], None);
        check("abcdefgh", &["n0"; 40], None);
    }
}
