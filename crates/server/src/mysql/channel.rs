//! The transport of a connection: plain or TLS, compressed or not. Output is buffered and sent together.

use std::{io, time::Duration};

use remora_protocol::mysql::{
    PacketReader, PacketWriter,
    compress::{Algorithm, Compressor},
};
use remora_sql::Encryption;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::tls::{self, Rewound};

/// Packets are sent when this many bytes are waiting.
const FLUSH_BYTES: usize = 256 << 10;
/// The bytes that a client must accept within the write timeout.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes that are decompressed at a time.
const PLAIN_BYTES: usize = 1 << 20;
/// How long and how much is still read from a client that is disconnected, so that it gets the reason before the
/// connection is reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 20;

enum Transport<S> {
    Plain(S),
    Tls(Box<TlsStream<Rewound<S>>>),
    /// While it is being replaced.
    Disconnected,
}

/// The output side of a connection, and the input for its reader.
pub(super) struct Channel<S> {
    transport: Transport<S>,
    compressor: Option<Compressor>,
    /// Packets that wait to be sent.
    pub writer: PacketWriter,
    /// Compressed bytes to send.
    wire: Vec<u8>,
    write_timeout: Duration,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Channel<S> {
    /// A channel over a stream that is neither encrypted nor compressed yet.
    pub(super) fn new(stream: S, write_timeout: Duration) -> Self {
        Self {
            transport: Transport::Plain(stream),
            compressor: None,
            writer: PacketWriter::default(),
            wire: Vec::new(),
            write_timeout,
        }
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_tls(&self) -> bool {
        matches!(self.transport, Transport::Tls(_))
    }

    /// The encryption, if there is one.
    pub(super) fn encryption(&self) -> Option<Encryption> {
        match &self.transport {
            Transport::Tls(stream) => tls::encryption(stream.get_ref().1),
            Transport::Plain(_) | Transport::Disconnected => None,
        }
    }

    /// Switches to TLS. Bytes that the client sent after its request belong to TLS.
    pub(super) async fn start_tls(
        &mut self,
        acceptor: &TlsAcceptor,
        reader: &mut PacketReader,
    ) -> io::Result<()> {
        let Transport::Plain(stream) =
            std::mem::replace(&mut self.transport, Transport::Disconnected)
        else {
            return Err(io::Error::other("TLS was asked for twice"));
        };
        let stream = acceptor.accept(Rewound::new(reader.take_rest(), stream)).await?;
        self.transport = Transport::Tls(Box::new(stream));
        Ok(())
    }

    /// Switches to compression.
    pub(super) fn start_compression(&mut self, algorithm: Algorithm, reader: &mut PacketReader) {
        let mut compressor = Compressor::new(algorithm);
        compressor.room().extend_from_slice(&reader.take_rest());
        reader.ignore_order();
        self.compressor = Some(compressor);
    }

    /// Waits for input and gives it to the reader; false at its end. Cancelling the wait loses no data.
    pub(super) async fn read_into(&mut self, reader: &mut PacketReader) -> io::Result<bool> {
        let room = reader.room();
        let Some(compressor) = &mut self.compressor else {
            return Ok(self.transport.read(room).await? > 0);
        };
        let before = room.len();
        loop {
            compressor.decompress(room, before + PLAIN_BYTES)?;
            if room.len() > before {
                return Ok(true);
            }
            if self.transport.read(compressor.room()).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Whether enough is waiting to be sent.
    pub(super) fn is_full(&self) -> bool {
        self.writer.bytes().len() >= FLUSH_BYTES
    }

    /// Sends everything that is waiting.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if self.writer.bytes().is_empty() {
            return Ok(());
        }
        let bytes = match &mut self.compressor {
            Some(compressor) => {
                self.wire.clear();
                compressor.compress(self.writer.bytes(), &mut self.wire)?;
                &self.wire
            }
            None => self.writer.bytes(),
        };
        // The timeout applies to each piece, so that a long answer may take longer in total.
        for piece in bytes.chunks(PIECE_BYTES) {
            timeout(self.write_timeout, self.transport.write(piece)).await??;
        }
        self.writer.clear();
        self.wire.shrink_to(FLUSH_BYTES);
        Ok(())
    }

    /// The memory of the channel in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let compressed = self.compressor.as_ref().map_or(0, Compressor::held_bytes);
        self.writer.held_bytes() + self.wire.capacity() + compressed
    }

    /// Sends everything that is waiting and ends the connection.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        let end = async {
            self.transport.shutdown().await?;
            let mut rest = Vec::with_capacity(4 << 10);
            let mut left = LINGER_BYTES;
            while left > 0 && self.transport.read(&mut rest).await? > 0 {
                left = left.saturating_sub(rest.len());
                rest.clear();
            }
            io::Result::Ok(())
        };
        timeout(LINGER, end).await.unwrap_or(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Transport<S> {
    async fn read(&mut self, room: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(room).await,
            Self::Tls(stream) => stream.read_buf(room).await,
            Self::Disconnected => Ok(0),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
            Self::Disconnected => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.shutdown().await,
            Self::Tls(stream) => stream.shutdown().await,
            Self::Disconnected => Ok(()),
        }
    }
}
