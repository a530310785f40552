//! A stream that can be asked whether its peer is gone, while another reads and writes it.

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

/// What a connection comes over.
pub(crate) trait Socket: Send + Sync + 'static {
    /// Waits until there may be something to read.
    fn readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Reads what there is.
    fn read_now(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize>;
    /// Waits until something may be written.
    fn writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Writes what there is room for.
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Says that nothing more comes.
    fn close(&self) -> io::Result<()>;
    /// Whether the peer has closed its side, whatever it sent before.
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
                // Fewer bytes than there is room for were all (epoll(7)): whoever asks again waits, without another call
                // that says so.
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

/// Asks whether the peer of a stream is gone; keeps nothing open.
pub(super) type Peer = Weak<dyn Socket>;

/// A stream of which there is one more that asks.
pub(crate) struct Wire(Arc<dyn Socket>);

impl Wire {
    /// The stream.
    pub(crate) fn new(socket: impl Socket) -> Self {
        Self(Arc::new(socket))
    }

    /// What asks whether its peer is gone.
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
