//! One connection: logs in, then reads, answers, writes.
//!
//! A client may send many commands without waiting. All commands of one read are answered in order and in one write, so
//! a round trip costs one read and one write. While a client does not read its answers, its commands are not read
//! (backpressure).

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use remora_protocol::mysql::{
    Command, PacketReader, WireError, auth::Nonce, handshake::Login, put_error,
};
use remora_sql::Identity;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::timeout,
};

use super::{
    channel::Channel,
    client::Flow,
    commands::ClientSession,
    login::{AuthenticatedLogin, Authenticator, LoginFailure, nonce, wire_error},
    processes::ConnectionSlot,
    service::SqlService,
};
use crate::{accounts::host_of, limits::BufferShare, settings::find_user};

/// Bytes of buffers that every connection may use.
const FREE_BYTES: usize = 128 << 10;

/// Serves a connection until the client leaves or is disconnected, or the server stops.
pub(super) async fn run<S>(
    stream: S,
    address: Option<IpAddr>,
    (service, is_sphinx): (Arc<SqlService>, bool),
    slot: ConnectionSlot,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let settings = service.shared.settings.load_full();
    let write_timeout = Duration::from_secs(settings.sql.write_timeout_s);
    let mut channel = Channel::new(stream, write_timeout);
    let mut reader = PacketReader::new(0);
    let nonce = nonce()?;
    let mut authenticator = Authenticator {
        channel: &mut channel,
        reader: &mut reader,
        service: &service,
        address,
        nonce,
    };
    let limit = Duration::from_secs(settings.sql.connect_timeout_s);
    let greeted = timeout(limit, authenticator.greet(slot.connection.id));
    let admitted = match greeted.await.unwrap_or_else(|_| Err(WireError::bad_handshake().into())) {
        Ok(admitted) => admitted,
        Err(refused) => return refuse(channel, &reader, refused, &service, address).await,
    };
    let stopping = service.shared.stopping.subscribe();
    let share = BufferShare::new(Arc::clone(&service.buffers));
    let mut connection = Connection {
        session: ClientSession::new(channel, &service, slot, &admitted),
        reader,
        address,
        is_sphinx,
        nonce,
        share,
        shared_bytes: 0,
        stopping,
    };
    match connection.complete_login(admitted).await {
        Ok(()) => connection.serve().await,
        Err(error) => connection.close_with_error(&error).await,
    }
}

/// Tells a client why it is refused.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    mut channel: Channel<S>,
    reader: &PacketReader,
    refused: LoginFailure,
    service: &SqlService,
    address: Option<IpAddr>,
) -> io::Result<()> {
    service.processes.count_refusal();
    match refused {
        LoginFailure::Disconnected(error) => Err(error),
        LoginFailure::Reported(error) => {
            tracing::info!("a MySQL client at {} was refused: {error}", host_of(address));
            channel.writer.set_sequence(reader.sequence());
            channel.writer.message(|out| put_error(out, &error, None));
            channel.close().await
        }
    }
}

struct Connection<S> {
    session: ClientSession<S>,
    reader: PacketReader,
    address: Option<IpAddr>,
    /// Whether sessions of its listener begin in Sphinx's dialect.
    is_sphinx: bool,
    nonce: Nonce,
    share: BufferShare,
    /// The last size of `share`.
    shared_bytes: usize,
    stopping: watch::Receiver<bool>,
}

/// A command that needs further messages from the client, detached from the message it came in.
enum InteractiveCommand {
    /// Log in again, with COM_CHANGE_USER's packet.
    ChangeUser(Vec<u8>),
    /// Run a text that reads a file of the client.
    Load { text: Vec<u8>, file: String },
}

impl InteractiveCommand {
    fn of<S>(command: &Command<'_>, session: &ClientSession<S>) -> Option<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match *command {
            Command::ChangeUser(packet) => Some(Self::ChangeUser(packet.to_vec())),
            Command::Query(text) => {
                let file = session.wanted_file(text)?;
                Some(Self::Load { text: text.to_vec(), file })
            }
            _ => None,
        }
    }
}

/// The outcome of waiting for input.
enum WaitOutcome {
    Input,
    /// The client has disconnected.
    End,
    /// The client was silent for too long.
    IdleTimeout,
    /// Another connection killed this one.
    Killed,
    /// The server is stopping.
    Stop,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Admits a client after its login.
    async fn complete_login(&mut self, admitted: AuthenticatedLogin) -> Result<(), WireError> {
        let AuthenticatedLogin { identity, login, compression, .. } = admitted;
        let dialect = self.dialect_of(&identity);
        self.session.client.session.begin_in_dialect(dialect);
        let session = &mut self.session;
        session.channel.writer.set_sequence(self.reader.sequence());
        session.identify(&identity)?;
        session.apply_login(&login).await?;
        session.put_ok();
        if let Some(algorithm) = compression {
            // The OK is the last uncompressed message.
            let flushed = session.channel.flush().await;
            flushed.map_err(|_| WireError::bad_handshake())?;
            session.channel.start_compression(algorithm, &mut self.reader);
        }
        Ok(())
    }

    /// The dialect in which a user's sessions begin; `None` for the server's.
    fn dialect_of(&self, who: &Identity) -> Option<bool> {
        let settings = self.session.settings();
        let of_user = || find_user(&settings.users, &who.user, self.address)?.is_sphinx;
        if self.is_sphinx { Some(true) } else { of_user() }
    }

    async fn serve(&mut self) -> io::Result<()> {
        self.reader.expect(0);
        loop {
            // Checked before each command: commands received together with the kill are not run.
            if self.session.is_killed() {
                return self.session.channel.close().await;
            }
            match self.reader.next_message() {
                Ok(Some(message)) => {
                    let command = Command::parse(message.payload);
                    self.session.begin(message.reply_sequence);
                    let flow = match InteractiveCommand::of(&command, &self.session) {
                        None => self.session.answer(command).await?,
                        Some(interactive) => self.run_interactive(interactive).await?,
                    };
                    self.session.end();
                    self.reader.expect(0);
                    match flow {
                        Flow::Continue if self.session.is_released() => {
                            return self.session.channel.flush().await;
                        }
                        Flow::Continue => {}
                        Flow::Disconnect => return self.session.channel.flush().await,
                        Flow::DisconnectWithError(error) => {
                            return self.close_with_error(&error).await;
                        }
                    }
                }
                Ok(None) => {
                    if let Some(error) = self.next_input().await? {
                        return match error {
                            Some(error) => self.close_with_error(&error).await,
                            None => Ok(()),
                        };
                    }
                }
                Err(error) => {
                    self.session.channel.writer.set_sequence(error.reply_sequence());
                    return self.close_with_error(&wire_error(error)).await;
                }
            }
            if self.session.channel.is_full() {
                self.session.channel.flush().await?;
                tokio::task::consume_budget().await;
            }
            // Checked after each command, because each may need more memory.
            if !self.has_room() {
                self.session.channel.writer.set_sequence(1);
                return self.close_with_error(&WireError::out_of_buffers()).await;
            }
        }
    }

    /// Sends what is waiting and waits for input. A result means the end, with an error for the client if there is one.
    async fn next_input(&mut self) -> io::Result<Option<Option<WireError>>> {
        self.session.channel.flush().await?;
        // Whatever is sent now is read as the reply to the client's next command.
        self.session.channel.writer.set_sequence(1);
        Ok(match self.wait().await? {
            WaitOutcome::Input => None,
            WaitOutcome::End | WaitOutcome::Killed => Some(None),
            WaitOutcome::IdleTimeout => {
                // This sequence number tells drivers that the error is not a reply and the connection is gone.
                self.session.channel.writer.set_sequence(0);
                Some(Some(WireError::client_silent()))
            }
            WaitOutcome::Stop => Some(Some(WireError::shutdown())),
        })
    }

    async fn wait(&mut self) -> io::Result<WaitOutcome> {
        let limit = self.session.read_limit(self.reader.is_partial());
        let slot = self.session.process();
        let read = self.session.channel.read_into(&mut self.reader);
        tokio::select! {
            biased;
            read = timeout(limit, read) => match read {
                Ok(more) => Ok(if more? { WaitOutcome::Input } else { WaitOutcome::End }),
                Err(_) => Ok(WaitOutcome::IdleTimeout),
            },
            () = slot.killed() => Ok(WaitOutcome::Killed),
            _ = self.stopping.wait_for(|stopping| *stopping) => Ok(WaitOutcome::Stop),
        }
    }

    /// Runs a command that needs further messages from the client.
    async fn run_interactive(&mut self, interactive: InteractiveCommand) -> io::Result<Flow> {
        match interactive {
            InteractiveCommand::ChangeUser(packet) => self.change_user(&packet).await,
            InteractiveCommand::Load { text, file } => {
                match self.session.fetch_file(&file, &mut self.reader).await? {
                    Ok(()) => self.session.answer(Command::Query(&text)).await,
                    Err(error) => {
                        self.session.put_error(&error);
                        Ok(Flow::Continue)
                    }
                }
            }
        }
    }

    /// Logs in again over the same connection.
    async fn change_user(&mut self, packet: &[u8]) -> io::Result<Flow> {
        let capabilities = self.session.client.capabilities;
        let Some(login) = Login::parse_change(packet, capabilities) else {
            return Ok(Flow::DisconnectWithError(WireError::malformed_packet()));
        };
        self.session.channel.flush().await?;
        let service = Arc::clone(&self.session.service);
        let mut authenticator = Authenticator {
            channel: &mut self.session.channel,
            reader: &mut self.reader,
            service: &service,
            address: self.address,
            nonce: self.nonce,
        };
        let limit = Duration::from_secs(service.shared.settings.load().sql.connect_timeout_s);
        let authenticated = timeout(limit, authenticator.authenticate(&login, capabilities)).await;
        self.session.channel.writer.set_sequence(self.reader.sequence());
        let changed = match authenticated.unwrap_or_else(|_| Err(WireError::bad_handshake().into()))
        {
            Ok(identity) => {
                let dialect = self.dialect_of(&identity);
                self.session.client.session.begin_in_dialect(dialect);
                self.session.change_user(identity, &login).await
            }
            Err(LoginFailure::Reported(error)) => Err(error),
            Err(LoginFailure::Disconnected(error)) => return Err(error),
        };
        match changed {
            Ok(()) => {
                self.session.put_ok();
                Ok(Flow::Continue)
            }
            Err(error) => {
                service.processes.count_refusal();
                Ok(Flow::DisconnectWithError(error))
            }
        }
    }

    /// Updates the connection's share of the buffer memory; false if there is not enough.
    fn has_room(&mut self) -> bool {
        let bytes = self.reader.held_bytes() + self.session.held_bytes();
        let bytes = bytes.saturating_sub(FREE_BYTES);
        if bytes == self.shared_bytes {
            return true;
        }
        self.shared_bytes = bytes;
        self.share.resize(bytes, self.session.settings().sql.buffered_mb << 20)
    }

    async fn close_with_error(&mut self, error: &WireError) -> io::Result<()> {
        self.session.put_error(error);
        self.session.channel.close().await
    }
}
