//! The threads that run SQL statements. Statements are async tasks; programs may call them from
//! anywhere, also within an async runtime of their own.
//!
//! Outside a runtime, the calling thread runs the statement itself, at the cost of a few function
//! calls. Within a runtime, where blocking is not allowed, and for statements that may need more
//! stack than the caller has, a thread of this module runs it.

use std::{
    future::Future,
    sync::{LazyLock, mpsc::sync_channel},
};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::{Error, Result};

/// A stack for the most deeply nested statement that is accepted.
const STACK_BYTES: usize = 16 << 20;
/// A text with at most this many words and signs fits into a small stack.
const MAX_WORDS: usize = 64;

/// The threads and timers; `None` if they cannot be created.
static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.thread_stack_size(STACK_BYTES).thread_name("remora").enable_time().build().ok()
});

/// Whether a statement may need a large stack: it has many words and signs, and each may open a
/// level of nesting.
pub(crate) fn may_be_deep(text: &str) -> bool {
    // The text of a statement that is prepared or executed by name is not in this text.
    let by_name = |word: &[u8]| {
        text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
    };
    if by_name(b"PREPARE") || by_name(b"EXECUTE") {
        return true;
    }
    let mut bytes = text.bytes();
    let (mut words, mut in_word) = (0, false);
    bytes.any(|byte| {
        let is_of_word = byte.is_ascii_alphanumeric() || !byte.is_ascii() || byte == b'_';
        let begins =
            (is_of_word && !in_word) || byte.is_ascii_punctuation() && !b"_,.;`".contains(&byte);
        in_word = is_of_word;
        words += usize::from(begins);
        words > MAX_WORDS
    })
}

/// Waits for the work of a statement, which may need a large stack.
///
/// # Errors
/// [`Error::Io`] if the system refused a new thread, or the work broke off.
pub(crate) fn wait<F>(is_deep: bool, work: F) -> Result<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let failed = |message: &str| Error::Io(message.to_owned().into());
    let runtime = RUNTIME.as_ref().ok_or_else(|| failed("the system refused a new thread"))?;
    if !is_deep && Handle::try_current().is_err() {
        return Ok(runtime.block_on(work));
    }
    let (sender, receiver) = sync_channel(1);
    runtime.spawn(async move {
        // The receiver waits until the result is sent.
        let _ = sender.send(work.await);
    });
    receiver.recv().map_err(|_| failed("the statement broke off: please report it"))
}

/// Runs work in a thread of this module, without waiting for it.
///
/// # Errors
/// [`Error::Io`] if the system refused a new thread.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    let failed = || Error::Io("the system refused a new thread".to_owned().into());
    RUNTIME.as_ref().ok_or_else(failed)?.spawn(work);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_deep_has_many_words_and_signs() {
        let plain = "SELECT id, name, price FROM shop.products WHERE brand = ? AND price BETWEEN ? AND ? \
                     ORDER BY price DESC, id LIMIT 10 OFFSET 20";
        assert!(!may_be_deep(plain) && !may_be_deep(""));
        assert!(may_be_deep("prepare s from @t") && may_be_deep("/* */ Execute s"));
        for level in ["(", "NOT ", "-", "1+", "CASE WHEN "] {
            assert!(may_be_deep(&level.repeat(65)), "{level}");
        }
        assert!(!may_be_deep(&"x".repeat(10_000)));
    }
}
