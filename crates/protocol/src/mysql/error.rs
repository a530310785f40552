//! Errors of the protocol itself, with MySQL's codes.

use remora_mysql::ErrorCode;
use remora_sql::Error;

/// An error as a client receives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {} ({}): {message}", .code.number(), .code.state())]
pub struct WireError {
    /// MySQL's number and SQLSTATE.
    pub code: ErrorCode,
    /// The message.
    pub message: String,
}

impl WireError {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// 1040: the limit of connections is reached.
    pub fn too_many_connections() -> Self {
        Self::new(ErrorCode::TooManyConnections, "Too many connections")
    }

    /// 1043: the login packet does not follow the protocol.
    pub fn bad_handshake() -> Self {
        Self::new(ErrorCode::BadHandshake, "Bad handshake")
    }

    /// 1045: the user or the password is wrong.
    pub fn access_denied(user: &str, host: &str, with_password: bool) -> Self {
        let with = if with_password { "YES" } else { "NO" };
        let message = format!("Access denied for user '{user}'@'{host}' (using password: {with})");
        Self::new(ErrorCode::AccessDenied, message)
    }

    /// 1047: an unknown command.
    pub fn unknown_command() -> Self {
        Self::new(ErrorCode::UnknownCommand, "Unknown command")
    }

    /// 1053: the server is stopping.
    pub fn shutdown() -> Self {
        Error::shutdown().into()
    }

    /// 1129: too many logins from this host failed.
    pub fn too_many_failures(host: &str) -> Self {
        let message = format!(
            "Host '{host}' is blocked because of many connection errors; try again in a few seconds"
        );
        Self::new(ErrorCode::HostBlocked, message)
    }

    /// 1130: no user may log in from this host.
    pub fn host_not_allowed(host: &str) -> Self {
        let message = format!("Host '{host}' is not allowed to connect to this MySQL server");
        Self::new(ErrorCode::HostNotAllowed, message)
    }

    /// 1153: a message larger than the limit.
    pub fn packet_too_large() -> Self {
        Self::new(ErrorCode::PacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes")
    }

    /// 1156: a packet with an unexpected sequence number.
    pub fn out_of_order() -> Self {
        Self::new(ErrorCode::PacketsOutOfOrder, "Got packets out of order")
    }

    /// 1203: the user has too many connections.
    pub fn too_many_user_connections(user: &str) -> Self {
        let message =
            format!("User {user} already has more than 'max_user_connections' active connections");
        Self::new(ErrorCode::TooManyUserConnections, message)
    }

    /// 1210: the parameters of a prepared statement cannot be parsed.
    pub fn wrong_parameters() -> Self {
        Error::wrong_parameters().into()
    }

    /// 1094: no connection has this number.
    pub fn unknown_thread(id: u64) -> Self {
        Error::unknown_thread(id).into()
    }

    /// 1095: the connection belongs to another user.
    pub fn not_owner(id: u64) -> Self {
        Error::not_owner(id).into()
    }

    /// 1243: no prepared statement has this number.
    pub fn unknown_statement(id: u32, command: &str) -> Self {
        Error::unknown_statement(id, command).into()
    }

    /// 1251: the client speaks an older protocol.
    pub fn old_client() -> Self {
        let message = "Client does not support authentication protocol requested by server; \
                       consider upgrading MySQL client";
        Self::new(ErrorCode::OldClient, message)
    }

    /// 1317: the statement was killed.
    pub fn interrupted() -> Self {
        Error::interrupted().into()
    }

    /// 1390: more parameters than the protocol can count.
    pub fn too_many_parameters() -> Self {
        Self::new(ErrorCode::TooManyParameters, "Prepared statement contains too many placeholders")
    }

    /// 1421: the prepared statement has no open cursor.
    pub fn no_cursor(id: u32) -> Self {
        Self::new(ErrorCode::NoCursor, format!("The statement ({id}) has no open cursor."))
    }

    /// 1461: too many prepared statements.
    pub fn too_many_statements(most: usize) -> Self {
        let message = format!(
            "Can't create more than max_prepared_stmt_count statements (current value: {most})"
        );
        Self::new(ErrorCode::TooManyStatements, message)
    }

    /// 1835: a packet too short for its command.
    pub fn malformed_packet() -> Self {
        Self::new(ErrorCode::MalformedPacket, "Malformed communication packet.")
    }

    /// 3024: the statement exceeded its time limit.
    pub fn query_timeout() -> Self {
        Error::query_timeout().into()
    }

    /// 3159: only connections by TLS or a Unix socket are accepted.
    pub fn needs_secure_transport() -> Self {
        let message = "Connections using insecure transport are prohibited while \
                       --require_secure_transport=ON.";
        Self::new(ErrorCode::SecureTransportRequired, message)
    }

    /// 4031: the client sent nothing for too long.
    pub fn client_silent() -> Self {
        let message = "The client was disconnected by the server because of inactivity. See \
                       wait_timeout and interactive_timeout for configuring this behavior.";
        Self::new(ErrorCode::ClientSilent, message)
    }

    /// 1041: no memory for more buffers.
    pub fn out_of_buffers() -> Self {
        let message = "Out of memory: all buffers of sql.buffered_mb are taken, try again later";
        Self::new(ErrorCode::OutOfResources, message)
    }
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        Self { code: error.code, message: error.message }
    }
}
