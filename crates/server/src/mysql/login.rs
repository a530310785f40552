//! The login of a connection: greeting, TLS, and authentication.

use std::{io, net::IpAddr, sync::Arc, time::Instant};

use remora_protocol::mysql::{
    PacketError, PacketReader, WireError,
    auth::{NONCE_BYTES, Nonce, Password, Plugin, Verdict},
    compress::Algorithm,
    handshake::{
        Capabilities, Hello, Login, is_old_client, is_tls_request, offered, put_auth_switch,
        put_fast_right, put_greeting, put_needs_password,
    },
};
use remora_sql::{Access, Identity, Right};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{channel::Channel, service::SqlService};
use crate::{
    accounts::{ClaimedAccount, LoginPolicy, host_of},
    random::random,
};

/// The most bytes of a message before the login.
const MAX_LOGIN_BYTES: usize = 64 << 10;
/// A client's request for the RSA key that encrypts its password.
const KEY_REQUEST: [u8; 1] = [2];

/// Why a login failed.
#[derive(Debug)]
pub(super) enum LoginFailure {
    /// The client is told.
    Reported(WireError),
    /// The client can no longer be told.
    Disconnected(io::Error),
}

impl From<io::Error> for LoginFailure {
    fn from(error: io::Error) -> Self {
        Self::Disconnected(error)
    }
}

impl From<WireError> for LoginFailure {
    fn from(error: WireError) -> Self {
        Self::Reported(error)
    }
}

/// A client that has logged in.
pub(super) struct AuthenticatedLogin {
    pub identity: Identity,
    pub login: Login,
    pub capabilities: Capabilities,
    /// The compression to use once the client was told of its success.
    pub compression: Option<Algorithm>,
}

/// A connection during authentication.
pub(super) struct Authenticator<'g, S> {
    pub channel: &'g mut Channel<S>,
    pub reader: &'g mut PacketReader,
    pub service: &'g SqlService,
    /// The client's address; `None` for local sockets.
    pub address: Option<IpAddr>,
    pub nonce: Nonce,
}

/// The random challenge of a connection.
pub(super) fn nonce() -> io::Result<Nonce> {
    random::<NONCE_BYTES>().map(Nonce::from_random)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Authenticator<'_, S> {
    /// Greets a new client and authenticates it. The caller writes the final OK or error.
    pub(super) async fn greet(&mut self, id: u32) -> Result<AuthenticatedLogin, LoginFailure> {
        let settings = self.service.shared.settings.load_full();
        let offer = offered(self.service.tls.is_some(), settings.sql.local_infile);
        let (version, nonce) = (self.service.version(), self.nonce);
        self.reader.set_limit(MAX_LOGIN_BYTES);
        self.send(|out| put_greeting(out, version, id, &nonce, offer)).await?;
        let mut packet = self.next_message().await?;
        if is_tls_request(&packet)
            && let Some(acceptor) = &self.service.tls
        {
            self.channel.start_tls(acceptor, self.reader).await?;
            packet = self.next_message().await?;
        }
        if is_old_client(&packet) {
            return Err(WireError::old_client().into());
        }
        let hello = Hello::parse(&packet, offer).ok_or_else(WireError::bad_handshake)?;
        if settings.sql.require_tls && !self.is_secure() {
            return Err(WireError::needs_secure_transport().into());
        }
        let compression = hello.compression();
        let Hello { login, capabilities, .. } = hello;
        let identity = self.authenticate(&login, capabilities).await?;
        self.reader.set_limit(settings.sql.max_allowed_packet);
        Ok(AuthenticatedLogin { identity, login, capabilities, compression })
    }

    /// Verifies the client's identity and returns it.
    pub(super) async fn authenticate(
        &mut self,
        login: &Login,
        capabilities: Capabilities,
    ) -> Result<Identity, LoginFailure> {
        let settings = self.service.shared.settings.load_full();
        let host = host_of(self.address);
        let login_policy = LoginPolicy::of(&settings);
        if !login_policy.is_required() {
            let mut identity =
                self.authenticate_without_password(login, capabilities, host).await?;
            if login_policy == LoginPolicy::TokenForAdministration {
                // SQL must not bypass the token that protects writes elsewhere.
                identity.rights = Some(vec![read_all()]);
            }
            return Ok(identity);
        }
        let service = self.service;
        let ClaimedAccount { password, identity } =
            service.shared.logins.claim(&settings, &login.user, self.address);
        let (plugin, answer) = self.ask(&password, login, capabilities).await?;
        let attempt = service.shared.logins.failures.begin_attempt(self.address, Instant::now());
        let attempt = attempt.ok_or_else(|| WireError::too_many_failures(&host))?;
        if !attempt.wait.is_zero() {
            tokio::time::sleep(attempt.wait).await;
        }
        let is_right = self.check(password, plugin, &answer, login, &host).await?;
        match identity.filter(|_| is_right) {
            Some(identity) => {
                attempt.succeeded();
                Ok(identity)
            }
            None => {
                attempt.failed(Instant::now());
                let has_password = has_password(&answer);
                Err(WireError::access_denied(&login.user, &host, has_password).into())
            }
        }
    }

    /// Admits everyone: only this machine can connect, and reading requires no login.
    async fn authenticate_without_password(
        &mut self,
        login: &Login,
        capabilities: Capabilities,
        host: String,
    ) -> Result<Identity, LoginFailure> {
        let (plugin, answer) = self.ask(&Password::plain(b""), login, capabilities).await?;
        if plugin == Plugin::CachingSha2 && has_password(&answer) {
            // The client expects this before the OK.
            self.send(put_fast_right).await?;
        }
        Ok(Identity { user: login.user.clone(), host, rights: None })
    }

    /// Gets the client's response for the password's authentication method, switching methods if necessary. A client
    /// that names an unsupported method sends a packet of it in any case, so it must be switched to another even if
    /// nothing is to be verified.
    async fn ask(
        &mut self,
        password: &Password,
        login: &Login,
        capabilities: Capabilities,
    ) -> Result<(Plugin, Vec<u8>), LoginFailure> {
        let can_switch = capabilities.contains(Capabilities::CLIENT_PLUGIN_AUTH);
        let (offered, wanted) = match &login.plugin {
            Some(name) => {
                let offered = Plugin::named(name);
                (offered, offered.unwrap_or_else(|| Plugin::instead_of(name)))
            }
            None => (Some(Plugin::Native), Plugin::Native),
        };
        let plugin = password.plugin(Some(wanted));
        if offered == Some(plugin) {
            return Ok((plugin, login.answer.clone()));
        }
        if !can_switch {
            return Err(WireError::old_client().into());
        }
        let nonce = self.nonce;
        self.send(|out| put_auth_switch(out, plugin, &nonce)).await?;
        Ok((plugin, self.next_message().await?))
    }

    async fn check(
        &mut self,
        password: Arc<Password>,
        plugin: Plugin,
        answer: &[u8],
        login: &Login,
        host: &str,
    ) -> Result<bool, LoginFailure> {
        Ok(match password.check(plugin, &self.nonce, answer) {
            Verdict::Right => true,
            Verdict::Wrong => false,
            Verdict::FastRight => {
                self.send(put_fast_right).await?;
                true
            }
            Verdict::NeedsPassword if !self.is_secure() => {
                // The client gets no reason, because that would reveal which accounts exist.
                tracing::warn!(
                    "the first login of '{}'@'{host}' with caching_sha2_password needs TLS or a Unix \
                     socket",
                    login.user
                );
                false
            }
            Verdict::NeedsPassword => self.check_clear(password).await?,
        })
    }

    /// Asks for the password in clear text.
    async fn check_clear(&mut self, password: Arc<Password>) -> Result<bool, LoginFailure> {
        self.send(put_needs_password).await?;
        let mut clear = self.next_message().await?;
        if clear == KEY_REQUEST {
            return Ok(false);
        }
        if clear.last() == Some(&0) {
            clear.pop();
        }
        // Thousands of rounds of SHA-256 must not block a thread that serves others.
        let checked = tokio::task::spawn_blocking(move || password.check_clear(&clear));
        Ok(checked.await.unwrap_or(false))
    }

    fn is_secure(&self) -> bool {
        self.channel.is_tls() || self.address.is_none()
    }

    async fn send(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.channel.writer.set_sequence(self.reader.sequence());
        self.channel.writer.message(put);
        self.reader.expect(self.channel.writer.sequence());
        self.channel.flush().await
    }

    async fn next_message(&mut self) -> Result<Vec<u8>, LoginFailure> {
        loop {
            match self.reader.next_message() {
                Ok(Some(message)) => return Ok(message.payload.to_vec()),
                Ok(None) => {}
                Err(error) => {
                    self.reader.expect(error.reply_sequence());
                    return Err(wire_error(error).into());
                }
            }
            if !self.channel.read_into(self.reader).await? {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

fn read_all() -> Right {
    let all = || "*".to_owned();
    Right { database: all(), table: all(), access: Access::Read }
}

fn has_password(answer: &[u8]) -> bool {
    !matches!(answer, [] | [0])
}

/// The error for a client whose input cannot be parsed.
pub(super) fn wire_error(error: PacketError) -> WireError {
    match error {
        PacketError::OutOfOrder { .. } => WireError::out_of_order(),
        PacketError::TooLarge { .. } => WireError::packet_too_large(),
    }
}
