//! Pagination of lists. A cursor is opaque, and valid for the list that returned it.

use crate::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use std::fmt::Display;
use utoipa::ToSchema;

/// The position after a page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pagination {
    pub has_more: bool,
    /// Send as `cursor` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
}

/// A list with pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paged {
    /// Name of the list inside its cursors.
    pub name: &'static str,
    /// Default number of entries on a page.
    pub usual: usize,
    /// Maximum number of entries on a page.
    pub most: usize,
}

impl Paged {
    /// Checks the requested number of entries; without one, returns the default.
    pub(crate) fn limit(self, requested: Option<usize>) -> Result<usize, Problem> {
        match requested.unwrap_or(self.usual) {
            limit if (1..=self.most).contains(&limit) => Ok(limit),
            _ => Err(Problem::invalid("limit", format!("must be an integer from 1 to {}", self.most))),
        }
    }

    /// Parses a cursor of this list; any other string is refused.
    pub(crate) fn place<T>(
        self,
        cursor: Option<&str>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(cursor) = cursor else { return Ok(None) };
        let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let place = text.as_deref().and_then(|text| text.strip_prefix(self.name)?.strip_prefix(':'));
        place.and_then(read).map(Some).ok_or_else(Paged::refuses)
    }

    pub(crate) fn refuses() -> Problem {
        Problem::invalid("cursor", "is not a cursor of this list; send the cursor of the previous page")
    }

    /// Returns the cursor for a position.
    pub(crate) fn cursor(self, place: impl Display) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}:{place}", self.name))
    }

    /// Returns the pagination for the position of the last entry, if more entries follow.
    pub(crate) fn next(self, place: Option<impl Display>) -> Pagination {
        let cursor = place.map(|place| self.cursor(place));
        Pagination { has_more: cursor.is_some(), cursor }
    }

    /// Truncates `found`, for which one entry more than `limit` was read, to a page.
    pub(crate) fn cut<T, P: Display>(
        self,
        found: &mut Vec<T>,
        limit: usize,
        place: impl FnOnce(&T) -> P,
    ) -> Pagination {
        let has_more = found.len() > limit;
        found.truncate(limit);
        self.next(found.last().filter(|_| has_more).map(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Paged = Paged { name: "audit", usual: 2, most: 3 };
    const OTHER: Paged = Paged { name: "versions", usual: 2, most: 3 };

    fn number(text: &str) -> Option<i64> {
        text.parse().ok()
    }

    #[test]
    fn a_cursor_is_valid_for_its_own_list_only() {
        for place in [0, 1, i64::MAX, i64::MIN] {
            let cursor = LIST.next(Some(place)).cursor;
            assert_eq!(LIST.place(cursor.as_deref(), number), Ok(Some(place)));
        }
        assert_eq!(LIST.place(None, number), Ok(None));
        let (other, bad) = (OTHER.next(Some(1)).cursor.unwrap(), LIST.next(Some("x")).cursor.unwrap());
        for wrong in ["", "abc", "%%", "17", &other, &bad] {
            let problem = LIST.place(Some(wrong), number).expect_err("it is refused");
            let (status, path) = (problem.status().as_u16(), problem.details[0].path.as_str());
            assert_eq!((status, path), (400, "cursor"), "{wrong}");
        }
    }

    #[test]
    fn limits_out_of_range_are_refused() {
        assert_eq!((LIST.limit(None), LIST.limit(Some(1)), LIST.limit(Some(3))), (Ok(2), Ok(1), Ok(3)));
        assert!(LIST.limit(Some(0)).is_err() && LIST.limit(Some(4)).is_err());
    }

    #[test]
    fn the_next_page_begins_after_the_last_entry_of_a_page() {
        let mut found = vec![9, 8, 7];
        let next = LIST.cut(&mut found, 2, |last| *last);
        assert_eq!((found, next.has_more), (vec![9, 8], true));
        assert_eq!(LIST.place(next.cursor.as_deref(), number), Ok(Some(8)));
        let end = LIST.cut(&mut vec![1, 2], 2, |last| *last);
        assert_eq!((end.has_more, end.cursor), (false, None));
    }
}
