//! What happens after a session with a source ends: a retry, new copies, or failure.
//!
//! | end                                       | what follows                                    |
//! |-------------------------------------------|-------------------------------------------------|
//! | unreachable, refused, damaged on the way  | again, after 0.1 s to 30 s with jitter           |
//! | the position is lost: the source purged   | again from where the source is now, with all     |
//! | what follows it, or has less than we      | tables copied beside what can be read; failed    |
//! | applied (reset, restored, another server) | where the settings want that                     |
//! | an event that cannot be followed          | again from where the source is now, the same way |
//! | another server with our history           | on with it; the stream's position is what counts |
//! | a table was changed here by someone else  | again                                            |
//! | rows of a table are not understood, or    | again, with the table copied anew; it alone      |
//! | refused by the engine                     | stops if that does not help                      |
//! | an event nobody understands, the engine   | failed                                           |
//! | cannot write, a change under strict       |                                                  |
//! | settings                                  |                                                  |

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use remora_engine::Error as EngineError;

use super::{
    session,
    shared::{FollowState, RequestedState},
    status::{State, count},
};
use crate::{
    Error,
    mysql::{coordinates::Coordinates, settings::OnLostPosition},
};

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A session of this length resets the pause.
const STABLE_SESSION: Duration = Duration::from_secs(10);
/// What a lost position's message says if following stops.
const LOST_POSITION_ADVICE: &str = "on_lost_position is stop, so nothing is copied by itself: SYNC of any table \
                         copies all of them anew";
/// A position that is damaged this often is damaged on the source's disk.
const MAX_DAMAGED: u32 = 5;

/// MygramDB's error code for a table whose definition can no longer be followed.
pub const SCHEMA_INCOMPATIBLE: u16 = 2012;

/// Its other codes for the end of a session.
mod code {
    pub(super) const CONNECTION: u16 = 2000;
    pub(super) const REPLICATION: u16 = 2003;
    pub(super) const LOST_POSITION: u16 = 2008;
    pub(super) const CHECKSUM: u16 = 2016;
    pub(super) const UNDECODABLE: u16 = 2017;
}

/// What happens after a session.
enum Next {
    /// Immediately, from the stored position.
    Again,
    /// After a pause.
    Later,
    /// Immediately, from the source's current position, with new copies.
    StartOver,
    /// Not without the owner's action.
    Never,
}

/// Follows until the owner stops it.
pub(super) fn run(shared: &Arc<FollowState>) {
    let (mut pause, mut start_over) = (MIN_BACKOFF, false);
    let mut damaged = DamagedPosition::default();
    while shared.wait_to_run() {
        shared.board.set_state(State::Connecting);
        // Without a valid position, a copy of one table requires copies of all.
        let (synced, _) = shared.requested_copies();
        start_over |= !synced.is_empty() && shared.lost.swap(false, Ordering::Relaxed);
        let began = Instant::now();
        let Err(error) = session::run(shared, &mut start_over) else {
            pause = MIN_BACKOFF;
            continue;
        };
        if shared.requested() != RequestedState::Run {
            continue;
        }
        if began.elapsed() >= STABLE_SESSION {
            pause = MIN_BACKOFF;
        }
        match next(shared, &error, &mut damaged) {
            Next::Again => {}
            Next::Later => {
                shared.board.set_state(State::Connecting);
                shared.pause(jittered(pause));
                pause = pause.saturating_mul(2).min(MAX_BACKOFF);
            }
            Next::StartOver => {
                shared.pause(if start_over { jittered(pause) } else { Duration::ZERO });
                start_over = true;
            }
            Next::Never => shared.fail(reason(shared, &error)),
        }
    }
}

/// The last damaged position, and how often it was damaged.
#[derive(Default)]
struct DamagedPosition {
    place: Coordinates,
    times: u32,
}

fn next(shared: &FollowState, error: &Error, damaged: &mut DamagedPosition) -> Next {
    let (code, next) = match error {
        // The rows of a table could not be read or were refused: the next session handles it.
        Error::Cancelled => return Next::Again,
        Error::Unreachable { .. }
        | Error::AccessDenied { .. }
        | Error::Requirement { .. }
        | Error::Setting(_)
        | Error::Statement { .. } => (code::CONNECTION, Next::Later),
        Error::Damaged { file, offset, .. } => {
            count(&shared.board.counters.checksum_errors, 1);
            let place = Coordinates { file: file.clone(), offset: *offset };
            damaged.times = if place == damaged.place { damaged.times + 1 } else { 1 };
            damaged.place = place;
            let next = if damaged.times < MAX_DAMAGED { Next::Later } else { Next::Never };
            (code::CHECKSUM, next)
        }
        Error::Purged { .. } | Error::BackInTime { .. } => (code::LOST_POSITION, lost(shared)),
        Error::Unfollowable { .. } => (code::REPLICATION, Next::StartOver),
        Error::Undecodable { .. } => (code::UNDECODABLE, Next::Never),
        Error::TableRefused { .. } => (SCHEMA_INCOMPATIBLE, Next::Never),
        // Someone else changed a table here, the disk is full for now, or a table's merges lag behind.
        Error::Engine(
            EngineError::NotFound { .. }
            | EngineError::Conflict(_)
            | EngineError::Full(_)
            | EngineError::Busy(_),
        ) => (code::REPLICATION, Next::Later),
        _ => (code::REPLICATION, Next::Never),
    };
    tracing::warn!("following {} was interrupted: {error}", shared.settings.address());
    shared.board.applying_since_us.store(0, Ordering::Relaxed);
    shared.board.set_error(code, reason(shared, error));
    next
}

fn lost(shared: &FollowState) -> Next {
    *shared.observed.lock() = None;
    match shared.settings.on_lost_position {
        OnLostPosition::Copy => Next::StartOver,
        OnLostPosition::Stop => {
            shared.lost.store(true, Ordering::Relaxed);
            Next::Never
        }
    }
}

/// The error, with advice.
fn reason(shared: &FollowState, error: &Error) -> String {
    match error {
        Error::Purged { .. } | Error::BackInTime { .. }
            if shared.settings.on_lost_position == OnLostPosition::Stop =>
        {
            format!("{error}; {LOST_POSITION_ADVICE}")
        }
        error => error.to_string(),
    }
}

/// Between half of the pause and all of it, so that followers of one source do not reconnect at once.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(std::process::id()) % 512;
    pause.mul_f64(0.5 + random as f64 / 1024.0)
}
