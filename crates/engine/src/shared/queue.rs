//! The queue between the callers of `apply` and the writer thread.
//!
//! It is bounded in bytes: a caller blocks while the queue is full, so a slow writer slows its callers down
//! instead of filling memory (backpressure). The writer takes as much as fits into one group commit.
//!
//! Callers that write one row after the other come back soon after their group was committed. Each commit costs about as
//! much as some ten rows, and a sync far more. So the writer waits a moment until as many callers are there as the last
//! group had, and no longer than the last commit took. A single caller waits for that once, behind a group of several.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{
    large::LargeCommit,
    prebuilt::PrebuiltSegments,
    prepared::PreparedBatch,
    waiter::{Bell, Waiter},
    watchers::Watcher,
};
use crate::{Definition, Error, Result};

/// The most batches in the queue.
const QUEUE_JOBS: usize = 4_096;
/// The most bytes of one group commit: about what a disk writes in the time of a few syncs.
const GROUP_BYTES: usize = 8 << 20;
/// The most batches of one group.
const GROUP_JOBS: usize = 1_024;

/// How long the writer waits for the callers of the last group while none of them comes, and how long altogether.
const GATHER_PAUSE: Duration = Duration::from_micros(100);
const GATHER_LIMIT: Duration = Duration::from_millis(1);
/// With so many bytes the writer does not wait: the cost of rows outweighs that of a commit.
const GATHERED_BYTES: usize = 256 << 10;

/// A job of the writer.
pub(crate) enum Job {
    /// Apply a batch.
    Apply(PreparedBatch, Waiter),
    /// Change table definitions.
    Define(Definitions, Waiter),
    /// Reserve a table number for staged rows.
    Reserve(Sender<Result<u32>>),
    /// Commit a staged batch.
    Large(LargeCommit, Waiter),
    /// Start or stop keeping changes for a watcher.
    Watch(WatchOrder),
    /// Block until the other end is dropped.
    Hold(Receiver<()>),
}

/// A job of the writer about watchers.
pub(crate) enum WatchOrder {
    /// Start to keep changes of these tables, or of all, for the watcher of this name, or for a new one without a
    /// name.
    Begin(Option<String>, Option<Vec<String>>, Sender<Result<Arc<Watcher>>>),
    /// Remove the watcher of this name.
    Forget(String, Waiter),
}

/// Changes of definitions, to be done atomically.
pub(crate) struct Definitions {
    /// The definitions, in the order in which they are applied.
    pub definitions: Vec<Definition>,
    /// As in [`crate::ChangeBatch::positions`].
    pub positions: Vec<(String, String)>,
    /// Segments of altered tables, built in advance.
    pub ahead: Vec<PrebuiltSegments>,
}

/// What the writer takes from the queue.
pub(crate) enum TakenJobs {
    /// A group of batches to be committed together, in order.
    Group(Vec<(PreparedBatch, Waiter)>),
    /// Definitions, between two groups.
    Definitions(Definitions, Waiter),
    /// As in [`Job::Reserve`].
    Reserve(Sender<Result<u32>>),
    /// A large batch, between two groups.
    Large(LargeCommit, Waiter),
    /// As in [`Job::Watch`].
    Watch(WatchOrder),
    /// As in [`Job::Hold`].
    Hold(Receiver<()>),
    /// Nothing: the time is over, or the queue was woken.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

/// The queue: many producers, one consumer.
pub(crate) struct WriteQueue {
    /// The most bytes in the queue. A single larger batch is allowed.
    most_bytes: usize,
    /// As [`GATHER_PAUSE`].
    pause: Duration,
    state: Mutex<State>,
    filled: Condvar,
    drained: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    bytes: usize,
    /// Where the callers of the next group sleep, and before them those of the group that was taken last.
    bells: [Arc<Bell>; 2],
    closed: Option<Error>,
    /// Whether the consumer was asked to wake up.
    woken: bool,
    /// The number of batches in the last group.
    last_group: usize,
    /// When it was taken, until the consumer comes back; then how long its commit took.
    taken_at: Option<Instant>,
    last_commit: Duration,
    /// While the consumer waits for the callers of the last group, how many jobs it waits for.
    gathered: usize,
}

impl WriteQueue {
    /// An empty queue for so many bytes.
    pub fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            pause: GATHER_PAUSE,
            state: Mutex::default(),
            filled: Condvar::new(),
            drained: Condvar::new(),
        }
    }

    /// Appends a job; waits while the queue is full.
    pub fn push(&self, job: Job) -> Result<()> {
        let bytes = job.bytes();
        let mut state = self.state.lock();
        while state.closed.is_none() && state.is_full_for(bytes, self.most_bytes) {
            self.drained.wait(&mut state);
        }
        if let Some(reason) = &state.closed {
            return Err(reason.clone());
        }
        state.bytes += bytes;
        let is_batch = if let Job::Apply(_, waiter) = &job {
            waiter.sleep_at(&state.bells[0]);
            true
        } else {
            false
        };
        state.jobs.push_back(job);
        if !is_batch || state.jobs.len() >= state.gathered {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes the next group or definition; waits up to `timeout` for one (`None`: for ever).
    pub fn take(&self, timeout: Option<Duration>) -> TakenJobs {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.state.lock();
        if let Some(taken_at) = state.taken_at.take() {
            state.last_commit = taken_at.elapsed();
        }
        while state.jobs.is_empty() {
            if state.closed.is_some() {
                return TakenJobs::Closed;
            }
            if std::mem::take(&mut state.woken) {
                return TakenJobs::Nothing;
            }
            match deadline {
                None => self.filled.wait(&mut state),
                Some(deadline) if self.filled.wait_until(&mut state, deadline).timed_out() => {
                    return TakenJobs::Nothing;
                }
                Some(_) => {}
            }
        }
        self.gather(&mut state);
        let taken = state.take();
        self.drained.notify_all();
        taken
    }

    /// Waits until as many batches are there as the last group had, or until no more of them come.
    fn gather(&self, state: &mut MutexGuard<'_, State>) {
        let began = Instant::now();
        let limit = state.last_commit.clamp(self.pause, GATHER_LIMIT.max(self.pause));
        loop {
            let found = state.jobs.len();
            let is_over = state.woken || state.closed.is_some() || began.elapsed() >= limit;
            let is_batch = matches!(state.jobs.back(), Some(Job::Apply(..)));
            if is_over
                || found >= state.last_group
                || state.bytes >= GATHERED_BYTES.min(self.most_bytes)
                || !is_batch
            {
                return;
            }
            state.gathered = state.last_group;
            let is_silent = self.filled.wait_for(state, self.pause).timed_out();
            state.gathered = 0;
            if is_silent && state.jobs.len() == found {
                return;
            }
        }
    }

    /// Waits until there is a job, or the queue is woken.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while state.jobs.is_empty() && state.closed.is_none() && !state.woken {
            self.filled.wait(&mut state);
        }
    }

    /// Wakes the consumer.
    pub fn wake(&self) {
        self.state.lock().woken = true;
        self.filled.notify_all();
    }

    /// Rejects further jobs with `reason`; queued ones are still done.
    pub fn close(&self, reason: Error) {
        self.state.lock().closed.get_or_insert(reason);
        self.wake_all();
    }

    /// Rejects further jobs and all queued ones with `reason`.
    pub fn fail(&self, reason: &Error) {
        let jobs = {
            let mut state = self.state.lock();
            state.closed = Some(reason.clone());
            state.bytes = 0;
            std::mem::take(&mut state.jobs)
        };
        self.wake_all();
        for job in jobs {
            match job {
                Job::Apply(_, waiter) | Job::Define(_, waiter) | Job::Large(_, waiter) => {
                    waiter.answer(Err(reason.clone()));
                }
                Job::Watch(WatchOrder::Forget(_, waiter)) => waiter.answer(Err(reason.clone())),
                // The caller notices that its channel is closed.
                Job::Watch(WatchOrder::Begin(..)) | Job::Reserve(_) | Job::Hold(_) => {}
            }
        }
    }

    fn wake_all(&self) {
        self.filled.notify_all();
        self.drained.notify_all();
    }
}

impl State {
    fn is_full_for(&self, bytes: usize, most_bytes: usize) -> bool {
        let over = self.bytes.saturating_add(bytes) > most_bytes && !self.jobs.is_empty();
        over || self.jobs.len() >= QUEUE_JOBS
    }

    fn take(&mut self) -> TakenJobs {
        let mut group = Vec::with_capacity(self.jobs.len().min(GROUP_JOBS));
        let mut group_bytes = 0;
        while let Some(job) = self.jobs.pop_front() {
            let bytes = job.bytes();
            match job {
                // A group must not wait for batches that are still being indexed.
                Job::Apply(batch, waiter)
                    if group.is_empty()
                        || (group.len() < GROUP_JOBS
                            && group_bytes + bytes <= GROUP_BYTES
                            && !batch.is_being_indexed()) =>
                {
                    self.bytes = self.bytes.saturating_sub(bytes);
                    group_bytes += bytes;
                    group.push((batch, waiter));
                }
                Job::Define(definitions, waiter) if group.is_empty() => {
                    return TakenJobs::Definitions(definitions, waiter);
                }
                Job::Reserve(answer) if group.is_empty() => return TakenJobs::Reserve(answer),
                Job::Large(large, waiter) if group.is_empty() => {
                    return TakenJobs::Large(large, waiter);
                }
                Job::Watch(order) if group.is_empty() => return TakenJobs::Watch(order),
                Job::Hold(until) if group.is_empty() => return TakenJobs::Hold(until),
                later => {
                    self.jobs.push_front(later);
                    break;
                }
            }
        }
        self.last_group = group.len();
        self.taken_at = Some(Instant::now());
        // While the callers of this group are woken, those of the next one go on sleeping.
        self.bells.swap(0, 1);
        TakenJobs::Group(group)
    }
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Self::Apply(batch, _) => batch.bytes,
            Self::Define(..)
            | Self::Reserve(_)
            | Self::Large(..)
            | Self::Watch(_)
            | Self::Hold(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        Position,
        indexing::Indexing,
        shared::{Outcome, PreparedTable},
        write::tests::fixture::schema,
    };

    fn batch(bytes: usize) -> (Job, Outcome) {
        let (waiter, outcome) = Waiter::new();
        (Job::Apply(PreparedBatch { bytes, ..PreparedBatch::default() }, waiter), outcome)
    }

    const QUEUE_BYTES: usize = 64 << 20;

    fn group_sizes(queue: &WriteQueue) -> Vec<usize> {
        match queue.take(Some(Duration::ZERO)) {
            TakenJobs::Group(group) => group.iter().map(|(batch, _)| batch.bytes).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn group_is_bounded_and_ends_at_a_definition() {
        let queue = WriteQueue::new(QUEUE_BYTES);
        queue.push(batch(GROUP_BYTES - 1).0).unwrap();
        queue.push(batch(1).0).unwrap();
        queue.push(batch(2).0).unwrap();
        let (waiter, _outcome) = Waiter::new();
        let definitions = vec![Definition::Drop("t".to_owned())];
        let definitions = Definitions { definitions, positions: Vec::new(), ahead: Vec::new() };
        queue.push(Job::Define(definitions, waiter)).unwrap();
        queue.push(batch(3).0).unwrap();
        assert_eq!(group_sizes(&queue), [GROUP_BYTES - 1, 1]);
        assert_eq!(group_sizes(&queue), [2]);
        assert!(matches!(queue.take(None), TakenJobs::Definitions(..)));
        assert_eq!(group_sizes(&queue), [3]);
        assert!(matches!(queue.take(Some(Duration::ZERO)), TakenJobs::Nothing));
    }

    #[test]
    fn finished_batch_does_not_wait_for_an_indexing_batch() {
        let queue = WriteQueue::new(QUEUE_BYTES);
        queue.push(batch(1).0).unwrap();
        let (indexing, _segment) = Indexing::under_way();
        let table = PreparedTable {
            number: 1,
            schema: Arc::new(schema()),
            defined: Position(0),
            changes: Vec::new(),
            segment: None,
            indexing: Some(indexing),
            text_bytes: 0,
            unique: Vec::new(),
        };
        let large = PreparedBatch { tables: vec![table], bytes: 2, ..PreparedBatch::default() };
        queue.push(Job::Apply(large, Waiter::new().0)).unwrap();
        queue.push(batch(3).0).unwrap();
        assert_eq!(group_sizes(&queue), [1]);
        assert_eq!(group_sizes(&queue), [2, 3]);
    }

    #[test]
    fn a_full_queue_makes_its_callers_wait() {
        let queue = WriteQueue::new(QUEUE_BYTES);
        queue.push(batch(QUEUE_BYTES).0).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| queue.push(batch(1).0));
            assert_eq!(group_sizes(&queue), [QUEUE_BYTES]);
            second.join().unwrap().unwrap();
        });
        assert_eq!(group_sizes(&queue), [1]);
    }

    #[test]
    fn callers_of_the_last_group_are_waited_for_and_others_are_not() {
        let mut queue = WriteQueue::new(QUEUE_BYTES);
        queue.pause = Duration::from_secs(60);
        (0..3).for_each(|_| queue.push(batch(1).0).unwrap());
        assert_eq!(group_sizes(&queue), [1, 1, 1]);
        queue.push(batch(2).0).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The consumer waits for three, or it has taken the one that is there.
                let is_waiting = |state: &State| state.gathered == 3 || state.jobs.is_empty();
                while !is_waiting(&queue.state.lock()) {
                    std::thread::yield_now();
                }
                (0..2).for_each(|_| queue.push(batch(2).0).unwrap());
            });
            assert_eq!(group_sizes(&queue), [2, 2, 2]);
        });
        // Of the three only one comes back.
        queue.pause = GATHER_PAUSE;
        queue.push(batch(4).0).unwrap();
        assert_eq!(group_sizes(&queue), [4]);
        queue.push(batch(5).0).unwrap();
        assert_eq!(group_sizes(&queue), [5]);
        assert_eq!(queue.state.lock().gathered, 0);
    }

    #[test]
    fn closing_drains_and_failing_answers() {
        let queue = WriteQueue::new(QUEUE_BYTES);
        let (job, _outcome) = batch(1);
        queue.push(job).unwrap();
        queue.close(Error::Closed);
        assert!(matches!(queue.push(batch(1).0), Err(Error::Closed)));
        assert_eq!(group_sizes(&queue), [1]);
        assert!(matches!(queue.take(None), TakenJobs::Closed));

        let queue = WriteQueue::new(QUEUE_BYTES);
        let (job, outcome) = batch(1);
        queue.push(job).unwrap();
        queue.fail(&Error::Poisoned("disk".to_owned()));
        assert!(matches!(outcome.wait(), Some(Err(Error::Poisoned(_)))));
        assert!(matches!(queue.push(batch(1).0), Err(Error::Poisoned(_))));
    }
}
