//! What goes wrong on the wire itself, with MySQL's numbers.

/// An error as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {number} ({state}): {message}")]
pub struct WireError {
    /// MySQL's number.
    pub number: u16,
    /// SQLSTATE.
    pub state: &'static str,
    /// For people.
    pub message: String,
}

impl WireError {
    fn new(number: u16, state: &'static str, message: impl Into<String>) -> Self {
        Self { number, state, message: message.into() }
    }

    /// 1040: every place is taken.
    pub fn too_many_connections() -> Self {
        Self::new(1040, "08004", "Too many connections")
    }

    /// 1043: the login is not what the protocol says.
    pub fn bad_handshake() -> Self {
        Self::new(1043, "08S01", "Bad handshake")
    }

    /// 1045: the user or the password is wrong.
    pub fn access_denied(user: &str, host: &str, with_password: bool) -> Self {
        let with = if with_password { "YES" } else { "NO" };
        let message = format!("Access denied for user '{user}'@'{host}' (using password: {with})");
        Self::new(1045, "28000", message)
    }

    /// 1047: a command that is not known.
    pub fn unknown_command() -> Self {
        Self::new(1047, "08S01", "Unknown command")
    }

    /// 1053: the server is stopping.
    pub fn shutdown() -> Self {
        Self::new(1053, "08S01", "Server shutdown in progress")
    }

    /// 1129: too many logins from there failed.
    pub fn too_many_failures(host: &str) -> Self {
        let message = format!(
            "Host '{host}' is blocked because of many connection errors; try again in a few seconds"
        );
        Self::new(1129, "HY000", message)
    }

    /// 1130: nobody may come from there.
    pub fn host_not_allowed(host: &str) -> Self {
        let message = format!("Host '{host}' is not allowed to connect to this MySQL server");
        Self::new(1130, "HY000", message)
    }

    /// 1153: a message above the limit.
    pub fn packet_too_large() -> Self {
        Self::new(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    }

    /// 1156: packets do not follow each other.
    pub fn out_of_order() -> Self {
        Self::new(1156, "08S01", "Got packets out of order")
    }

    /// 1157: what was compressed cannot be read.
    pub fn cannot_uncompress() -> Self {
        Self::new(1157, "08S01", "Couldn't uncompress communication packet")
    }

    /// 1203: the user has too many connections.
    pub fn too_many_user_connections(user: &str) -> Self {
        let message =
            format!("User {user} already has more than 'max_user_connections' active connections");
        Self::new(1203, "42000", message)
    }

    /// 1210: the values of a prepared statement cannot be read.
    pub fn wrong_parameters() -> Self {
        Self::new(1210, "HY000", "Incorrect arguments to mysqld_stmt_execute")
    }

    /// 1094: no such connection.
    pub fn unknown_thread(id: u64) -> Self {
        Self::new(1094, "HY000", format!("Unknown thread id: {id}"))
    }

    /// 1095: another user's connection.
    pub fn not_owner(id: u64) -> Self {
        Self::new(1095, "HY000", format!("You are not owner of thread {id}"))
    }

    /// 1243: no such prepared statement.
    pub fn unknown_statement(id: u32, command: &str) -> Self {
        let message = format!("Unknown prepared statement handler ({id}) given to {command}");
        Self::new(1243, "HY000", message)
    }

    /// 1251: the client speaks an older protocol.
    pub fn old_client() -> Self {
        let message = "Client does not support authentication protocol requested by server; \
                       consider upgrading MySQL client";
        Self::new(1251, "08004", message)
    }

    /// 1317: killed.
    pub fn interrupted() -> Self {
        Self::new(1317, "70100", "Query execution was interrupted")
    }

    /// 1390: more parameters than a packet can count.
    pub fn too_many_parameters() -> Self {
        Self::new(1390, "HY000", "Prepared statement contains too many placeholders")
    }

    /// 1421: a prepared statement without open cursor.
    pub fn no_cursor(id: u32) -> Self {
        Self::new(1421, "HY000", format!("The statement ({id}) has no open cursor."))
    }

    /// 1461: too many prepared statements.
    pub fn too_many_statements(most: usize) -> Self {
        let message = format!(
            "Can't create more than max_prepared_stmt_count statements (current value: {most})"
        );
        Self::new(1461, "42000", message)
    }

    /// 1835: a packet that says less than its command needs.
    pub fn malformed_packet() -> Self {
        Self::new(1835, "HY000", "Malformed communication packet.")
    }

    /// 3024: the statement took too long.
    pub fn query_timeout() -> Self {
        let message = "Query execution was interrupted, maximum statement execution time exceeded";
        Self::new(3024, "HY000", message)
    }

    /// 3159: only TLS and Unix sockets.
    pub fn needs_secure_transport() -> Self {
        let message = "Connections using insecure transport are prohibited while \
                       --require_secure_transport=ON.";
        Self::new(3159, "HY000", message)
    }

    /// 4031: the client was silent for too long.
    pub fn client_silent() -> Self {
        let message = "The client was disconnected by the server because of inactivity. See \
                       wait_timeout and interactive_timeout for configuring this behavior.";
        Self::new(4031, "HY000", message)
    }

    /// 1041: no room for more buffers.
    pub fn out_of_buffers() -> Self {
        let message = "Out of memory: all buffers of sql.buffered_mb are taken, try again later";
        Self::new(1041, "HY000", message)
    }
}

impl From<remora_sql::Error> for WireError {
    fn from(error: remora_sql::Error) -> Self {
        Self { number: error.code.number(), state: error.code.state(), message: error.message }
    }
}
