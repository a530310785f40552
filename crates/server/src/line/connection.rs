//! One connection: reads, answers, writes.
//!
//! A client may send many requests without waiting. All requests of one read are answered in order and in one write, so
//! a round trip costs one read and one write. While a client does not read its replies, its requests are not read:
//! nothing piles up (backpressure).

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use remora_protocol::line::{
    FrameLimits, FrameReader, LineError, code, is_http,
    reply::{end_reply, write_error},
    write_export_end, write_export_part,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{
    Session,
    export::{ExportPart, WaitingExport},
};
use crate::{limits::BufferShare, settings::Limits, shared::ServerState};

const INPUT_BYTES: usize = 16 << 10;
/// Replies are sent when this many bytes are waiting, even if more requests are.
const FLUSH_BYTES: usize = 256 << 10;
/// After so much time without a part, an export sends an empty one, so that its client need not think it dead, and so
/// that a client that has left is noticed.
const EXPORT_PAUSE: Duration = Duration::from_secs(5);
/// The same after the end of what the client sends, which may mean that it has left.
const PAUSE_BEHIND_END: Duration = Duration::from_millis(250);
/// How long and how much is still read from a client that is disconnected, so that it gets the reason before the
/// connection is reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 4 << 20;

/// Serves a connection until the client leaves, exceeds a limit, or the server stops.
pub(super) async fn run<S>(
    stream: S,
    address: Option<IpAddr>,
    shared: Arc<ServerState>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let frames = frame_limits(&shared.settings.load().limits);
    let mut stopping = shared.stopping.subscribe();
    let mut connection = Connection {
        stream,
        reader: FrameReader::new(frames),
        session: Session::new(Arc::clone(&shared), address),
        output: Vec::new(),
        unread: Vec::new(),
        share: BufferShare::new(Arc::clone(&shared.buffers)),
        partial_since: None,
        shared: Arc::clone(&shared),
    };
    let mut input = vec![0u8; INPUT_BYTES];
    loop {
        let deadline = connection.read_deadline();
        let read = timeout_at(deadline, connection.stream.read(&mut input));
        let bytes = tokio::select! {
            biased;
            read = read => read??,
            () = wait_for_stop(&mut stopping) => return Ok(()),
        };
        let Some(input) = input.get(..bytes).filter(|input| !input.is_empty()) else {
            return Ok(());
        };
        let mut taken = connection.take(input).await?;
        // What arrived meanwhile. Exports among it may let more arrive.
        while taken.is_ok() && !connection.unread.is_empty() {
            let unread = std::mem::take(&mut connection.unread);
            taken = connection.take(&unread).await?;
        }
        if let Err(reason) = taken {
            return connection.close_with_error(&reason).await;
        }
    }
}

fn frame_limits(limits: &Limits) -> FrameLimits {
    FrameLimits {
        frame_bytes: limits.max_request_bytes,
        pending_frames: limits.pending_requests,
        pending_bytes: limits.pending_bytes,
    }
}

struct Connection<S> {
    stream: S,
    reader: FrameReader,
    session: Session,
    output: Vec<u8>,
    /// What the client sent during an export, and was not looked at.
    unread: Vec<u8>,
    share: BufferShare,
    /// When the current incomplete request began.
    partial_since: Option<Instant>,
    shared: Arc<ServerState>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// The deadline for the client's next bytes.
    fn read_deadline(&mut self) -> Instant {
        let settings = self.shared.settings.load();
        let now = Instant::now();
        if self.reader.held_bytes() == 0 {
            self.partial_since = None;
            return now + settings.idle_timeout();
        }
        let since = *self.partial_since.get_or_insert(now);
        since + settings.request_timeout()
    }

    /// Answers the requests that `input` completes. An inner error is the reason to disconnect the client.
    async fn take(&mut self, mut input: &[u8]) -> io::Result<Result<(), LineError>> {
        while !input.is_empty() {
            let pushed = self.reader.push(input);
            if let Err(reason) = self.answer_waiting().await? {
                return Ok(Err(reason));
            }
            match pushed {
                Ok(taken) => input = input.get(taken..).unwrap_or_default(),
                Err(error) => return Ok(Err(error.into())),
            }
            if !self.has_buffer_room() {
                return Ok(Err(LineError::server_busy("all buffers are taken, try again later")));
            }
        }
        self.flush().await?;
        Ok(Ok(()))
    }

    async fn answer_waiting(&mut self) -> io::Result<Result<(), LineError>> {
        while let Some(frame) = self.reader.next_frame() {
            self.partial_since = None;
            if is_http(frame) {
                return Ok(Err(LineError::not_http()));
            }
            let start = self.output.len();
            self.session.answer(frame, &mut self.output);
            if let Some(export) = self.session.take_export() {
                self.send_export(*export).await?;
                continue;
            }
            let delay = self.session.take_delay();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let most = self.shared.settings.load().limits.write_queue_bytes;
            let reply_bytes = self.output.len() - start;
            if reply_bytes > most {
                self.output.truncate(start);
                write_error(&mut self.output, &reply_too_large(reply_bytes, most));
                end_reply(&mut self.output);
            }
            if self.output.len() >= FLUSH_BYTES {
                self.flush().await?;
                tokio::task::consume_budget().await;
            }
        }
        Ok(Ok(()))
    }

    /// Sends the parts of an export as they are made.
    async fn send_export(&mut self, export: WaitingExport) -> io::Result<()> {
        let mut stopping = self.shared.stopping.subscribe();
        let mut parts = match export.start() {
            Ok(parts) => parts,
            Err(error) => {
                write_export_end(&mut self.output, &Err(error));
                return self.flush().await;
            }
        };
        self.flush().await?;
        // After the end of what it sends a client may still read.
        let (mut has_ended, mut sent) = (false, Instant::now());
        loop {
            let room = self.unread_room();
            let mut input = vec![0; if has_ended { 0 } else { room.min(INPUT_BYTES) }];
            let pause = if has_ended { PAUSE_BEHIND_END } else { EXPORT_PAUSE };
            let part = tokio::select! {
                biased;
                () = wait_for_stop(&mut stopping) => ExportPart::End(Err(stopped())),
                part = parts.next() => part,
                read = self.stream.read(&mut input), if !input.is_empty() => {
                    let bytes = read?;
                    self.unread.extend_from_slice(input.get(..bytes).unwrap_or_default());
                    has_ended = bytes == 0;
                    continue;
                }
                // Who has left is noticed by writing alone.
                () = sleep_until(sent + pause) => ExportPart::Bytes(Vec::new()),
            };
            match part {
                ExportPart::Bytes(bytes) => write_export_part(&mut self.output, &bytes),
                ExportPart::End(end) => {
                    write_export_end(&mut self.output, &end);
                    return self.flush().await;
                }
            }
            self.flush().await?;
            sent = Instant::now();
        }
    }

    /// How many bytes of requests may still arrive during an export.
    fn unread_room(&mut self) -> usize {
        if !self.has_buffer_room() {
            return 0;
        }
        let most = self.shared.settings.load().limits.pending_bytes;
        most.saturating_sub(self.unread.len())
    }

    fn has_buffer_room(&mut self) -> bool {
        let waiting = self.reader.held_bytes() + self.unread.capacity();
        let bytes = INPUT_BYTES + waiting + self.output.capacity();
        self.share.resize(bytes, self.shared.settings.load().limits.buffered_bytes)
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let write_timeout = self.shared.settings.load().request_timeout();
        timeout(write_timeout, self.stream.write_all(&self.output)).await??;
        self.output.clear();
        self.output.shrink_to(FLUSH_BYTES);
        Ok(())
    }

    async fn close_with_error(&mut self, reason: &LineError) -> io::Result<()> {
        write_error(&mut self.output, reason);
        end_reply(&mut self.output);
        self.flush().await?;
        self.stream.shutdown().await?;
        let drain = async {
            let mut rest = [0u8; 4096];
            let mut left = LINGER_BYTES;
            while left > 0 && self.stream.read(&mut rest).await? > 0 {
                left = left.saturating_sub(rest.len());
            }
            io::Result::Ok(())
        };
        timeout(LINGER, drain).await.unwrap_or(Ok(()))
    }
}

/// Waits until the server stops.
async fn wait_for_stop(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server has been dropped.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

fn stopped() -> LineError {
    LineError::new(code::SHUTTING_DOWN, "The server is stopping")
}

fn reply_too_large(bytes: usize, most: usize) -> LineError {
    LineError::server_busy(format_args!(
        "the reply takes {bytes} bytes, above the limit of {most}: ask for fewer rows or fields, \
         or raise write_queue_bytes"
    ))
}
