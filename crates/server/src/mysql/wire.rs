//! A stream that can be checked for a disconnected peer while another task reads and writes it.

use std::{
    io,
    os::fd::AsFd,
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::{TcpStream, UnixStream},
};

/// A socket.
pub(crate) trait Socket: Send + Sync + 'static {
    /// Waits until it may be readable.
    fn readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Reads available bytes.
    fn read_now(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize>;
    /// Waits until it may be writable.
    fn writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Writes as many bytes as possible.
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Shuts the writing side down.
    fn close(&self) -> io::Result<()>;
    /// Whether the peer has closed its side, even if unread bytes remain.
    fn is_gone(&self) -> bool;
}

macro_rules! socket {
    ($stream:ty, $of_std:ty) => {
        impl Socket for $stream {
            fn readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_read_ready(context)
            }

            fn read_now(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
                let mut read = Err(io::ErrorKind::WouldBlock.into());
                // Fewer bytes than requested were all of them (epoll(7)), so the next read may wait without another
                // system call.
                let _ = self.try_io(Interest::READABLE, || {
                    let room = buffer.remaining();
                    read = self.try_read_buf(buffer);
                    match read {
                        Ok(count) if count == 0 || count == room => Ok(()),
                        _ => Err(io::ErrorKind::WouldBlock.into()),
                    }
                });
                read
            }

            fn writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_write_ready(context)
            }

            fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
                self.try_write(bytes)
            }

            fn close(&self) -> io::Result<()> {
                let same = <$of_std>::from(self.as_fd().try_clone_to_owned()?);
                same.shutdown(std::net::Shutdown::Write)
            }

            fn is_gone(&self) -> bool {
                let asked = pin!(self.ready(Interest::READABLE));
                let answer = asked.poll(&mut Context::from_waker(Waker::noop()));
                matches!(answer, Poll::Ready(Ok(ready)) if ready.is_read_closed())
            }
        }
    };
}

socket!(TcpStream, std::net::TcpStream);
socket!(UnixStream, std::os::unix::net::UnixStream);

/// Checks whether a stream's peer has disconnected, without keeping the stream open.
pub(super) type Peer = Weak<dyn Socket>;

/// A stream that can be shared with a [`Peer`].
pub(crate) struct Wire(Arc<dyn Socket>);

impl Wire {
    /// The stream.
    pub(crate) fn new(socket: impl Socket) -> Self {
        Self(Arc::new(socket))
    }

    /// A handle that checks whether the peer has disconnected.
    pub(super) fn peer(&self) -> Peer {
        Arc::downgrade(&self.0)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.readable(context))?;
            match self.0.read_now(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.writable(context))?;
            match self.0.write_now(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.close())
    }
}
