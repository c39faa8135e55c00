//! Lists page by page. Cursors are places in a list as callers hold them: opaque, and of one list only.

use crate::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use std::fmt::Display;
use utoipa::ToSchema;

/// Where a list goes on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    pub has_more: bool,
    /// To be sent as `cursor` for the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cursor: Option<String>,
}

/// A list that is read page by page.
#[derive(Debug, Clone, Copy)]
pub struct Paged {
    /// In its cursors.
    pub name: &'static str,
    /// Entries of a page, and how many may be asked for.
    pub usual: usize,
    pub most: usize,
}

impl Paged {
    /// How many entries are wanted.
    pub fn limit(self, asked: Option<usize>) -> Result<usize, Problem> {
        match asked.unwrap_or(self.usual) {
            limit if (1..=self.most).contains(&limit) => Ok(limit),
            _ => Err(Problem::invalid("limit", format!("must be a whole number from 1 to {}", self.most))),
        }
    }

    /// The place that a cursor of this list names; any other text is refused.
    pub fn place<T>(
        self,
        cursor: Option<&str>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(cursor) = cursor else { return Ok(None) };
        let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let place = text.as_deref().and_then(|text| text.strip_prefix(self.name)?.strip_prefix(':'));
        place.and_then(read).map(Some).ok_or_else(Paged::refuses)
    }

    pub fn refuses() -> Problem {
        Problem::invalid("cursor", "is no cursor of this list; take it from the answer before")
    }

    /// Where the list goes on, if it does.
    pub fn next(self, place: Option<impl Display>) -> Pagination {
        let cursor = place.map(|place| URL_SAFE_NO_PAD.encode(format!("{}:{place}", self.name)));
        Pagination { has_more: cursor.is_some(), cursor }
    }

    /// Cuts what was found to a page. One more than its limit was looked for; the next page begins after the last.
    pub fn cut<T, P: Display>(
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
    fn a_cursor_is_read_as_it_was_written_and_by_its_list_alone() {
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
    fn limits_are_strict() {
        assert_eq!((LIST.limit(None), LIST.limit(Some(1)), LIST.limit(Some(3))), (Ok(2), Ok(1), Ok(3)));
        assert!(LIST.limit(Some(0)).is_err() && LIST.limit(Some(4)).is_err());
    }

    #[test]
    fn a_list_goes_on_after_the_last_entry_of_a_page_if_there_is_more() {
        let mut found = vec![9, 8, 7];
        let next = LIST.cut(&mut found, 2, |last| *last);
        assert_eq!((found, next.has_more), (vec![9, 8], true));
        assert_eq!(LIST.place(next.cursor.as_deref(), number), Ok(Some(8)));
        let end = LIST.cut(&mut vec![1, 2], 2, |last| *last);
        assert_eq!((end.has_more, end.cursor), (false, None));
    }
}
