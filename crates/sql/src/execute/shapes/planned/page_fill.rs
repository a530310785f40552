//! How many of the first rows of an order fill a page. Rows that a join or a condition drops make them more than the page
//! has; a plan learns how many more, so that it need not read the first rows twice.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::super::plan::MAX_PAGE_ROWS;

/// The unit of a share.
const WHOLE: u32 = 256;
/// The greatest share: rows that are read in vain cost too.
const MOST: u32 = 4 * WHOLE;
/// The part of the surplus that is given up after each page that was filled at once.
const GIVEN_UP: u32 = 64;

/// The share of a page's rows that is likely to fill it, in units of [`WHOLE`].
pub(super) struct PageFillEstimate(AtomicU32);

impl Default for PageFillEstimate {
    fn default() -> Self {
        Self(AtomicU32::new(WHOLE))
    }
}

impl PageFillEstimate {
    /// The number of first rows to try for a page that ends with row `last`.
    pub(super) fn rows(&self, last: u64) -> u64 {
        let share = u64::from(self.0.load(Relaxed));
        let rows = last.saturating_mul(share).div_ceil(u64::from(WHOLE));
        rows.min(MAX_PAGE_ROWS).max(last)
    }

    /// Notes that the first try filled the page: fewer rows may do as well.
    pub(super) fn record_full_page(&self) {
        let share = self.0.load(Relaxed);
        if share > WHOLE {
            self.0.store(share - (share - WHOLE).div_ceil(GIVEN_UP), Relaxed);
        }
    }

    /// Begins anew: what was learned is more than can be read.
    pub(super) fn forget(&self) {
        self.0.store(WHOLE, Relaxed);
    }

    /// Notes that `tried` rows gave only `found` result rows.
    pub(super) fn record_short_page(&self, tried: u64, found: u64) {
        let share = with_reserve(tried.saturating_mul(u64::from(WHOLE)) / found.max(1));
        self.0.store(u32::try_from(share).unwrap_or(MOST).clamp(WHOLE, MOST), Relaxed);
    }
}

/// How many first rows to try next after `tried` rows gave only `found` result rows: about as many as fill a page if
/// the share stays the same, and a quarter more.
pub(super) fn more_rows(tried: u64, found: u64, page: u64) -> u64 {
    let likely = with_reserve(tried.saturating_mul(page) / found.max(1));
    likely.clamp(tried.saturating_mul(2), tried.saturating_mul(8)).min(MAX_PAGE_ROWS)
}

fn with_reserve(rows: u64) -> u64 {
    rows.saturating_add(rows / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_learns_how_many_rows_fill_a_page() {
        let likely = PageFillEstimate::default();
        assert_eq!(likely.rows(20), 20);
        likely.record_full_page();
        assert_eq!(likely.rows(20), 20);
        likely.record_short_page(20, 18);
        assert_eq!(likely.rows(20), 28);
        (0..100).for_each(|_| likely.record_full_page());
        assert_eq!(likely.rows(20), 20);
        likely.record_short_page(20, 0);
        assert_eq!(likely.rows(20), 80);
        assert_eq!(likely.rows(MAX_PAGE_ROWS), MAX_PAGE_ROWS);
        likely.forget();
        assert_eq!(likely.rows(20), 20);
        assert_eq!(likely.rows(0), 0);
    }

    #[test]
    fn more_rows_are_tried_each_time() {
        assert_eq!(more_rows(20, 18, 20), 40);
        assert_eq!(more_rows(20, 5, 20), 100);
        assert_eq!(more_rows(20, 0, 20), 160);
        assert_eq!(more_rows(MAX_PAGE_ROWS, 1, 20), MAX_PAGE_ROWS);
    }
}
