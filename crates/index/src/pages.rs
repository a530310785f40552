//! A page cache for sections that stay in their files.
//!
//! The caches of all open sections together are limited ([`set_page_cache_bytes`]). Each section has a share in
//! proportion to its size. Within a section eviction is second-chance (clock): a page that was used since the
//! last pass is spared once.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;

use crate::Result;

/// The most bytes cached, over all sections.
static MOST_BYTES: AtomicU64 = AtomicU64::new(64 << 20);
/// Bytes of a page.
const PAGE: u64 = 16 << 10;

/// The sum of the sizes of all open sections that have a page cache.
static OPEN_BYTES: AtomicU64 = AtomicU64::new(0);
/// The number of pages cached, over all sections.
static KEPT_PAGES: AtomicU64 = AtomicU64::new(0);

/// Sets the most bytes that the page caches of all sections of this process take together; 64 MiB at first.
pub fn set_page_cache_bytes(bytes: u64) {
    MOST_BYTES.store(bytes, Ordering::Relaxed);
}

/// The page cache of one section.
#[derive(Debug)]
pub(crate) struct Pages {
    bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    pages: FxHashMap<u64, Page>,
    /// The page numbers in the order of eviction, the next victim first.
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct Page {
    bytes: Arc<Vec<u8>>,
    /// Whether the page was used since eviction last passed it.
    is_used: bool,
}

impl Pages {
    /// An empty cache for a section of so many bytes.
    pub fn new(bytes: u64) -> Self {
        OPEN_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes, kept: Mutex::default() }
    }

    /// Appends the bytes `start..end` of the section to `out`. `read` loads pages that are not cached.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read_into(
        &self,
        (start, end): (u64, u64),
        mut read: impl FnMut(u64, u64) -> Result<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut at = start;
        while at < end {
            let number = at / PAGE;
            let first = number * PAGE;
            let known = self.find(number);
            let page = match known {
                Some(page) => page,
                None => {
                    let page = Arc::new(read(first, (first + PAGE).min(self.bytes))?);
                    self.keep(number, Arc::clone(&page));
                    page
                }
            };
            let (from, to) = ((at - first) as usize, (end.min(first + PAGE) - first) as usize);
            out.extend_from_slice(page.get(from..to).unwrap_or_default());
            at = first + PAGE;
        }
        Ok(())
    }

    fn find(&self, number: u64) -> Option<Arc<Vec<u8>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let page = kept.pages.get_mut(&number)?;
        page.is_used = true;
        let bytes = Arc::clone(&page.bytes);
        // The share shrinks when other sections are opened: evict one page per hit until the cache fits
        // again.
        if kept.order.len() > self.most() {
            kept.drop_one();
        }
        Some(bytes)
    }

    fn keep(&self, number: u64, bytes: Arc<Vec<u8>>) {
        let most = self.most();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.pages.insert(number, Page { bytes, is_used: false }).is_none() {
            kept.order.push_back(number);
            KEPT_PAGES.fetch_add(1, Ordering::Relaxed);
        }
        // Sections that were opened earlier may still exceed their share.
        let is_full =
            || KEPT_PAGES.load(Ordering::Relaxed) > MOST_BYTES.load(Ordering::Relaxed) / PAGE;
        while kept.order.len() > most || kept.order.len() > 1 && is_full() {
            kept.drop_one();
        }
    }

    /// The most pages that this section may keep.
    fn most(&self) -> usize {
        let open = u128::from(OPEN_BYTES.load(Ordering::Relaxed).max(1));
        let share = u128::from(MOST_BYTES.load(Ordering::Relaxed)) * u128::from(self.bytes) / open;
        usize::try_from(share / u128::from(PAGE)).unwrap_or(usize::MAX).max(1)
    }
}

impl Kept {
    fn drop_one(&mut self) {
        while let Some(number) = self.order.pop_front() {
            match self.pages.get_mut(&number) {
                Some(page) if page.is_used => {
                    page.is_used = false;
                    self.order.push_back(number);
                }
                _ => {
                    self.pages.remove(&number);
                    KEPT_PAGES.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        OPEN_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        KEPT_PAGES.fetch_sub(kept.order.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_equal_the_file_and_the_cache_is_bounded() {
        let bytes: Vec<u8> = (0..PAGE * 5 + 100).map(|at| ((at * 31) >> 5) as u8).collect();
        let pages = Pages::new(bytes.len() as u64);
        // Other sections that take nearly the whole cache.
        let others = Pages::new((64 << 20) * bytes.len() as u64 / (3 * PAGE));
        let mut read = 0;
        for (at, length) in
            [(0, 10), (PAGE - 3, 7), (PAGE * 2, PAGE * 3 + 100), (5, 0), (1, PAGE * 4), (0, 9)]
        {
            let mut out = vec![7];
            let from_file = |start: u64, end: u64| {
                read += 1;
                Ok(bytes[start as usize..end as usize].to_vec())
            };
            pages.read_into((at, at + length), from_file, &mut out).unwrap();
            assert_eq!(out[1..], bytes[at as usize..(at + length) as usize]);
            let kept = pages.kept.lock().unwrap();
            assert!(kept.pages.len() <= 3 && kept.order.len() == kept.pages.len());
        }
        assert!((6..16).contains(&read), "{read}");
        drop(others);
        assert!(pages.most() > 3);
    }
}
