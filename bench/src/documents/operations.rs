//! The operations of tiedot's benchmark on a collection.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use remora::{Collection, Filter};

use super::sample::Sample;
use crate::random::SplitMix64;

/// A collection whose documents have the ids from 1 on.
pub(super) struct Operations<'c> {
    all: &'c Collection,
    /// The ids given so far.
    ids: AtomicU64,
    /// Documents of the first phase.
    count: u64,
}

impl<'c> Operations<'c> {
    pub(super) fn new(all: &'c Collection, count: u64) -> Self {
        Self { all, ids: AtomicU64::new(0), count }
    }

    /// Any existing id, as tiedot picks random ids.
    pub(super) fn id(&self, random: &mut SplitMix64) -> i64 {
        1 + random.below(self.count as usize) as i64
    }

    pub(super) fn sample(&self, random: &mut SplitMix64) -> Sample {
        Sample::new(random, self.count)
    }

    /// tiedot's query: documents with exactly one of two values, or with one of three adjacent numbers.
    pub(super) fn query(&self, random: &mut SplitMix64) -> Filter {
        let mut number = || random.below(self.count as usize) as i64;
        let one = remora::field("nested.nested.int").equals(number());
        let other = remora::field("ints").equals(number());
        let from = number();
        let between = remora::field("ints").between(from, from + 2);
        (one.clone() & !other.clone()) | (other & !one) | between
    }

    pub(super) fn insert(&self, random: &mut SplitMix64) -> Result<()> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed) as i64 + 1;
        Ok(self.all.insert_as(id, &self.sample(random))?)
    }

    pub(super) fn read(&self, random: &mut SplitMix64) -> Result<()> {
        let found = self.all.get(self.id(random))?;
        ensure!(found.is_none_or(|it| it.is_object()), "no document");
        Ok(())
    }

    pub(super) fn read_text(&self, random: &mut SplitMix64) -> Result<()> {
        std::hint::black_box(self.all.get_json(self.id(random))?);
        Ok(())
    }

    pub(super) fn look_up(&self, random: &mut SplitMix64) -> Result<()> {
        std::hint::black_box(self.all.find(self.query(random)).ids()?);
        Ok(())
    }

    pub(super) fn update(&self, random: &mut SplitMix64) -> Result<()> {
        match self.all.replace(self.id(random), &self.sample(random)) {
            Err(remora::Error::NotFound(_)) => Ok(()),
            other => Ok(other?),
        }
    }

    pub(super) fn delete(&self, random: &mut SplitMix64) -> Result<()> {
        self.all.delete(self.id(random))?;
        Ok(())
    }

    /// One operation of the mix of tiedot's `bench2`.
    pub(super) fn mixed(&self, random: &mut SplitMix64) -> Result<()> {
        match random.below(7) {
            0 | 1 => self.insert(random),
            2 | 3 => self.read(random),
            4 => self.look_up(random),
            5 => self.update(random),
            _ => self.delete(random),
        }
    }

    /// What generates the document, query or id of an operation of the mix.
    pub(super) fn generate_mixed(&self, random: &mut SplitMix64) {
        match random.below(7) {
            0 | 1 | 5 => _ = std::hint::black_box(self.sample(random)),
            4 => _ = std::hint::black_box(self.query(random)),
            _ => _ = std::hint::black_box(self.id(random)),
        }
    }

    /// The number of documents inserted so far.
    pub(super) fn inserted(&self) -> u64 {
        self.ids.load(Ordering::Relaxed)
    }
}
