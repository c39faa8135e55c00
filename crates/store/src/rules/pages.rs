//! Pages of a journal: bounded in rows and in bytes.

use crate::store::{JournalPage, JournalRow, PageBounds, StoreResult};

/// Fills a page with rows from the one that holds version `from` on. `read` returns a row and the bytes it takes in the
/// store. The page ends with the row that reaches a bound, so that it has at least one row if there is one.
pub fn fill_page<T>(
    places: &[T],
    from: u64,
    bounds: PageBounds,
    mut read: impl FnMut(&T) -> StoreResult<(JournalRow, usize)>,
) -> StoreResult<JournalPage> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for place in places.iter().take(bounds.rows_max) {
        let (row, size) = read(place)?;
        rows.push(row);
        bytes += size;
        if bytes >= bounds.bytes_max {
            break;
        }
    }
    let more = rows.len() < places.len() || rows.len() == bounds.rows_max;
    // Only the last row of all can end before the requested version.
    rows.retain(|row: &JournalRow| row.version + row.records.len() as u64 > from);
    Ok(JournalPage { more: more && !rows.is_empty(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{CommitId, Position};
    use windlass_kernel::{Event, Millis, Record};

    #[test]
    fn a_page_ends_with_the_row_that_reaches_a_bound() {
        let row = |version: &u64| {
            let records = vec![Record { at: Millis(1), event: Event::Continued }];
            let (position, commit) = (Position(1), CommitId(1));
            Ok((JournalRow { position, commit, version: *version, records }, 10))
        };
        let cases = [
            ((0, 9, 999), (3, false)),
            ((0, 3, 999), (3, true)),
            ((0, 2, 999), (2, true)),
            ((0, 9, 1), (1, true)),
            ((0, 9, 11), (2, true)),
            ((0, 9, 30), (3, false)),
            ((0, 0, 999), (0, false)),
            ((3, 9, 999), (0, false)),
        ];
        for ((from, rows_max, bytes_max), (rows, more)) in cases {
            let bounds = PageBounds { rows_max, bytes_max };
            let page = fill_page(&[0, 1, 2], from, bounds, row).expect("no read fails");
            let found = page.rows.iter().filter(|row| row.version >= from).count();
            assert_eq!((found, page.more), (rows, more), "{from} {bounds:?}");
        }
    }
}
