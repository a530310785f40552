//! LOAD DATA LOCAL: fetches the client's file over the connection.

use std::{io, time::Duration};

use remora_protocol::mysql::{PacketReader, WireError, handshake::Capabilities, put_file_request};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use super::{commands::ClientSession, login::wire_error};

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ClientSession<S> {
    /// The name of the client's file that a statement wants to read.
    pub(super) fn wanted_file(&self, text: &[u8]) -> Option<String> {
        let can_send = self.client.capabilities.contains(Capabilities::CLIENT_LOCAL_FILES);
        // The server's setting may have changed since the login.
        let is_allowed = can_send && self.settings().sql.local_infile;
        if is_allowed { self.client.session.local_file(text) } else { None }
    }

    /// Requests a file from the client and gives it to the session. An inner error is for the client.
    pub(super) async fn fetch_file(
        &mut self,
        name: &str,
        reader: &mut PacketReader,
    ) -> io::Result<Result<(), WireError>> {
        let settings = self.settings();
        let most = settings.sql.max_allowed_packet;
        let write_timeout = Duration::from_secs(settings.sql.write_timeout_s);
        let process = self.process();
        let mut stopping = self.service.shared.stopping.subscribe();
        put_file_request(&mut self.channel.writer, name);
        self.channel.flush().await?;
        reader.expect(self.channel.writer.sequence());
        let mut file = Vec::new();
        let mut is_too_large = false;
        loop {
            match reader.next_message() {
                Ok(Some(message)) if message.payload.is_empty() => {
                    self.channel.writer.set_sequence(message.reply_sequence);
                    break;
                }
                Ok(Some(message)) => {
                    is_too_large |= file.len() + message.payload.len() > most;
                    match is_too_large {
                        true => file = Vec::new(),
                        false => file.extend_from_slice(message.payload),
                    }
                }
                Ok(None) => {
                    let read = timeout(write_timeout, self.channel.read_into(reader));
                    let more = tokio::select! {
                        read = read => read??,
                        () = process.killed() => false,
                        _ = stopping.wait_for(|stopping| *stopping) => false,
                    };
                    if !more {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Ok(Err(wire_error(error))),
            }
        }
        if is_too_large {
            return Ok(Err(WireError::packet_too_large()));
        }
        self.client.session.give_file(file);
        Ok(Ok(()))
    }
}
