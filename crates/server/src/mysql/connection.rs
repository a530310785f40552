//! One connection: logs in, then reads, answers, writes.
//!
//! A client may send many commands without waiting. All commands of one read are answered in order and in one write, so
//! a round trip costs one read and one write. While a client does not read its answers, its commands are not read
//! (backpressure).

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use remora_protocol::mysql::{
    Command, PacketReader, WireError, auth::Nonce, handshake::Login, put_error,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::timeout,
};

use super::{
    channel::Channel,
    client::Flow,
    commands::Talk,
    login::{Admitted, Gate, Refused, nonce, wire_error},
    processes::ConnectionSlot,
    side::SqlSide,
};
use crate::{accounts::host_of, limits::BufferShare};

/// Bytes of buffers that every connection may use.
const FREE_BYTES: usize = 128 << 10;

/// Serves a connection until the client leaves or is disconnected, or the server stops.
pub(super) async fn run<S>(
    stream: S,
    address: Option<IpAddr>,
    side: Arc<SqlSide>,
    place: ConnectionSlot,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let settings = side.shared.settings.load_full();
    let patience = Duration::from_secs(settings.sql.write_timeout_s);
    let mut channel = Channel::new(stream, patience);
    let mut reader = PacketReader::new(0);
    let nonce = nonce()?;
    let mut gate = Gate { channel: &mut channel, reader: &mut reader, side: &side, address, nonce };
    let limit = Duration::from_secs(settings.sql.connect_timeout_s);
    let greeted = timeout(limit, gate.greet(place.connection.id));
    let admitted = match greeted.await.unwrap_or_else(|_| Err(WireError::bad_handshake().into())) {
        Ok(admitted) => admitted,
        Err(refused) => return refuse(channel, &reader, refused, &side, address).await,
    };
    let stopping = side.shared.stopping.subscribe();
    let share = BufferShare::new(Arc::clone(&side.buffers));
    let mut connection = Connection {
        talk: Talk::new(channel, &side, place, &admitted),
        reader,
        address,
        nonce,
        share,
        shared_bytes: 0,
        stopping,
    };
    match connection.enter(admitted).await {
        Ok(()) => connection.serve().await,
        Err(error) => connection.send_away(&error).await,
    }
}

/// Tells a client why it is refused.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    mut channel: Channel<S>,
    reader: &PacketReader,
    refused: Refused,
    side: &SqlSide,
    address: Option<IpAddr>,
) -> io::Result<()> {
    side.processes.count_refusal();
    match refused {
        Refused::Gone(error) => Err(error),
        Refused::Told(error) => {
            tracing::info!("a MySQL client at {} was refused: {error}", host_of(address));
            channel.writer.set_sequence(reader.sequence());
            channel.writer.message(|out| put_error(out, &error, None));
            channel.send_away().await
        }
    }
}

struct Connection<S> {
    talk: Talk<S>,
    reader: PacketReader,
    address: Option<IpAddr>,
    nonce: Nonce,
    share: BufferShare,
    /// The last size of `share`.
    shared_bytes: usize,
    stopping: watch::Receiver<bool>,
}

/// A command that needs further messages from the client, detached from the message it came in.
enum Extended {
    /// Log in again, with COM_CHANGE_USER's packet.
    ChangeUser(Vec<u8>),
    /// Run a text that reads a file of the client.
    Load { text: Vec<u8>, file: String },
}

impl Extended {
    fn of<S>(command: &Command<'_>, talk: &Talk<S>) -> Option<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match *command {
            Command::ChangeUser(packet) => Some(Self::ChangeUser(packet.to_vec())),
            Command::Query(text) => {
                let file = talk.wanted_file(text)?;
                Some(Self::Load { text: text.to_vec(), file })
            }
            _ => None,
        }
    }
}

/// The outcome of waiting for input.
enum Waited {
    Input,
    /// The client has disconnected.
    End,
    /// The client was silent for too long.
    Silence,
    /// Another connection killed this one.
    Killed,
    /// The server is stopping.
    Stop,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Admits a client after its login.
    async fn enter(&mut self, admitted: Admitted) -> Result<(), WireError> {
        let Admitted { identity, login, compression, .. } = admitted;
        let talk = &mut self.talk;
        talk.channel.writer.set_sequence(self.reader.sequence());
        talk.identify(&identity)?;
        talk.settle(&login).await?;
        talk.put_ok();
        if let Some(algorithm) = compression {
            // The OK is the last uncompressed message.
            let flushed = talk.channel.flush().await;
            flushed.map_err(|_| WireError::bad_handshake())?;
            talk.channel.start_compression(algorithm, &mut self.reader);
        }
        Ok(())
    }

    async fn serve(&mut self) -> io::Result<()> {
        self.reader.expect(0);
        loop {
            // Checked before each command: commands received together with the kill are not run.
            if self.talk.is_killed() {
                return self.talk.channel.send_away().await;
            }
            match self.reader.next_message() {
                Ok(Some(message)) => {
                    let command = Command::parse(message.payload);
                    self.talk.begin(message.reply_sequence);
                    let flow = match Extended::of(&command, &self.talk) {
                        None => self.talk.answer(command).await?,
                        Some(extended) => self.converse(extended).await?,
                    };
                    self.talk.end();
                    self.reader.expect(0);
                    match flow {
                        Flow::Continue => {}
                        Flow::Leave => return self.talk.channel.flush().await,
                        Flow::SendAway(error) => return self.send_away(&error).await,
                    }
                }
                Ok(None) => {
                    if let Some(error) = self.next_input().await? {
                        return match error {
                            Some(error) => self.send_away(&error).await,
                            None => Ok(()),
                        };
                    }
                }
                Err(error) => {
                    self.talk.channel.writer.set_sequence(error.reply_sequence());
                    return self.send_away(&wire_error(error)).await;
                }
            }
            if self.talk.channel.is_full() {
                self.talk.channel.flush().await?;
                tokio::task::consume_budget().await;
            }
            // Checked after each command, because each may need more memory.
            if !self.has_room() {
                self.talk.channel.writer.set_sequence(1);
                return self.send_away(&WireError::out_of_buffers()).await;
            }
        }
    }

    /// Sends what is waiting and waits for input. A result means the end, with an error for the client if there is one.
    async fn next_input(&mut self) -> io::Result<Option<Option<WireError>>> {
        self.talk.channel.flush().await?;
        // Whatever is sent now is read as the reply to the client's next command.
        self.talk.channel.writer.set_sequence(1);
        Ok(match self.wait().await? {
            Waited::Input => None,
            Waited::End | Waited::Killed => Some(None),
            Waited::Silence => {
                // This sequence number tells drivers that the error is not a reply and the connection is gone.
                self.talk.channel.writer.set_sequence(0);
                Some(Some(WireError::client_silent()))
            }
            Waited::Stop => Some(Some(WireError::shutdown())),
        })
    }

    async fn wait(&mut self) -> io::Result<Waited> {
        let limit = self.talk.read_limit(self.reader.is_partial());
        let place = self.talk.process();
        let read = self.talk.channel.read_into(&mut self.reader);
        tokio::select! {
            biased;
            read = timeout(limit, read) => match read {
                Ok(more) => Ok(if more? { Waited::Input } else { Waited::End }),
                Err(_) => Ok(Waited::Silence),
            },
            () = place.killed() => Ok(Waited::Killed),
            _ = self.stopping.wait_for(|stopping| *stopping) => Ok(Waited::Stop),
        }
    }

    /// Runs a command that needs further messages from the client.
    async fn converse(&mut self, extended: Extended) -> io::Result<Flow> {
        match extended {
            Extended::ChangeUser(packet) => self.change_user(&packet).await,
            Extended::Load { text, file } => {
                match self.talk.fetch_file(&file, &mut self.reader).await? {
                    Ok(()) => self.talk.answer(Command::Query(&text)).await,
                    Err(error) => {
                        self.talk.put_error(&error);
                        Ok(Flow::Continue)
                    }
                }
            }
        }
    }

    /// Logs in again over the same connection.
    async fn change_user(&mut self, packet: &[u8]) -> io::Result<Flow> {
        let capabilities = self.talk.client.capabilities;
        let Some(login) = Login::parse_change(packet, capabilities) else {
            return Ok(Flow::SendAway(WireError::malformed_packet()));
        };
        self.talk.channel.flush().await?;
        let side = Arc::clone(&self.talk.side);
        let mut gate = Gate {
            channel: &mut self.talk.channel,
            reader: &mut self.reader,
            side: &side,
            address: self.address,
            nonce: self.nonce,
        };
        let limit = Duration::from_secs(side.shared.settings.load().sql.connect_timeout_s);
        let proved = timeout(limit, gate.prove(&login, capabilities)).await;
        self.talk.channel.writer.set_sequence(self.reader.sequence());
        let changed = match proved.unwrap_or_else(|_| Err(WireError::bad_handshake().into())) {
            Ok(identity) => self.talk.change_user(identity, &login).await,
            Err(Refused::Told(error)) => Err(error),
            Err(Refused::Gone(error)) => return Err(error),
        };
        match changed {
            Ok(()) => {
                self.talk.put_ok();
                Ok(Flow::Continue)
            }
            Err(error) => {
                side.processes.count_refusal();
                Ok(Flow::SendAway(error))
            }
        }
    }

    /// Updates the connection's share of the buffer memory; false if there is not enough.
    fn has_room(&mut self) -> bool {
        let bytes = self.reader.held_bytes() + self.talk.held_bytes();
        let bytes = bytes.saturating_sub(FREE_BYTES);
        if bytes == self.shared_bytes {
            return true;
        }
        self.shared_bytes = bytes;
        self.share.resize(bytes, self.talk.settings().sql.buffered_mb << 20)
    }

    async fn send_away(&mut self, error: &WireError) -> io::Result<()> {
        self.talk.put_error(error);
        self.talk.channel.send_away().await
    }
}
