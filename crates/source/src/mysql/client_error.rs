//! What a failed connection or statement means for the caller.

use mysql::{DriverError, MySqlError};

use super::{quote::quoted, settings::MysqlSettings};
use crate::Error;

/// Error codes of the servers.
mod code {
    pub(super) const DB_ACCESS_DENIED: u16 = 1044;
    pub(super) const ACCESS_DENIED: u16 = 1045;
    pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;
    pub(super) const BAD_DATABASE: u16 = 1049;
    pub(super) const SHUTDOWN: u16 = 1053;
    pub(super) const HOST_BLOCKED: u16 = 1129;
    pub(super) const HOST_NOT_ALLOWED: u16 = 1130;
    pub(super) const TABLE_ACCESS_DENIED: u16 = 1142;
    pub(super) const COLUMN_ACCESS_DENIED: u16 = 1143;
    pub(super) const TOO_MANY_OF_USER: u16 = 1203;
    pub(super) const USER_LIMIT: u16 = 1226;
    pub(super) const PRIVILEGE_MISSING: u16 = 1227;
    pub(super) const FATAL_READING_BINLOG: u16 = 1236;
    pub(super) const INTERRUPTED: u16 = 1317;
    pub(super) const PASSWORD_EXPIRED: u16 = 1820;
    pub(super) const PASSWORD_EXPIRED_LOGIN: u16 = 1862;
    pub(super) const KILLED: u16 = 1927;
    pub(super) const ACCOUNT_LOCKED: u16 = 3118;
    pub(super) const TLS_REQUIRED: u16 = 3159;
    pub(super) const ACCOUNT_LOCKED_MARIADB: u16 = 4151;
}

/// The grants that following needs, for an account of which nothing but the user's name is known.
fn mend_grants(settings: &MysqlSettings) -> String {
    grants(settings, &account(&settings.user, "%"))
}

/// The grants that following needs, for the account as the source writes it.
pub(super) fn grants(settings: &MysqlSettings, account: &str) -> String {
    let database = settings.database.as_deref();
    let database = database.map_or("*".to_owned(), quoted);
    format!(
        "run at the source: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account}; \
         GRANT SELECT ON {database}.* TO {account};"
    )
}

/// The grant that reading one table needs.
pub(super) fn grant_on_table(database: &str, table: &str, account: &str) -> String {
    let (database, table) = (quoted(database), quoted(table));
    format!("run at the source: GRANT SELECT ON {database}.{table} TO {account};")
}

/// `'user'@'host'`, as statements name an account.
pub(super) fn account(user: &str, host: &str) -> String {
    format!("'{}'@'{}'", user.replace('\'', "''"), host.replace('\'', "''"))
}

/// What a library says, without the addresses of its own pages.
fn plain(message: &str) -> String {
    let is_page = |word: &&str| word.contains("://");
    let words = message.split_whitespace().filter(|word| !is_page(word));
    let words: Vec<&str> = words.collect();
    words.join(" ").trim_end_matches(':').to_owned()
}

/// The source cannot be reached.
pub(super) fn unreachable(settings: &MysqlSettings, message: impl Into<String>) -> Error {
    Error::Unreachable { address: settings.address(), message: message.into() }
}

/// What the caller can do about an error of the client, met while doing this: a statement, or
/// words.
pub fn client_error(settings: &MysqlSettings, doing: &str, error: mysql::Error) -> Error {
    match error {
        mysql::Error::MySqlError(error) => server_error(settings, doing, &error),
        mysql::Error::DriverError(DriverError::TlsNotSupported) => Error::Requirement {
            message: format!("{} has no TLS", settings.address()),
            mend: "set ssl_cert and ssl_key at the source, or ssl-mode=off here".to_owned(),
        },
        mysql::Error::DriverError(DriverError::UnknownAuthPlugin(plugin)) => denied(
            settings,
            format!("it wants the authentication plugin {plugin}, which is not supported"),
            "give the user one of caching_sha2_password, mysql_native_password or ed25519".into(),
        ),
        mysql::Error::TlsError(error) => {
            unreachable(settings, format!("TLS: {}", plain(&error.to_string())))
        }
        mysql::Error::IoError(error) => unreachable(settings, plain(&error.to_string())),
        mysql::Error::DriverError(error) => unreachable(settings, plain(&error.to_string())),
        mysql::Error::CodecError(error) => unreachable(settings, plain(&error.to_string())),
        other => statement_error(doing, plain(&other.to_string())),
    }
}

fn server_error(settings: &MysqlSettings, doing: &str, error: &MySqlError) -> Error {
    let said = || format!("{} (error {})", error.message, error.code);
    match error.code {
        code::ACCESS_DENIED if doing == "connecting" => {
            denied(settings, said(), "check the user's name and password".to_owned())
        }
        code::HOST_NOT_ALLOWED => denied(
            settings,
            said(),
            format!(
                "run at the source: CREATE USER '{}'@'%' IDENTIFIED BY '...'; and then: {}",
                settings.user.replace('\'', "''"),
                mend_grants(settings)
            ),
        ),
        code::PASSWORD_EXPIRED
        | code::PASSWORD_EXPIRED_LOGIN
        | code::ACCOUNT_LOCKED
        | code::ACCOUNT_LOCKED_MARIADB => {
            denied(settings, said(), "unlock the user or give it a new password there".to_owned())
        }
        code::ACCESS_DENIED
        | code::DB_ACCESS_DENIED
        | code::TABLE_ACCESS_DENIED
        | code::COLUMN_ACCESS_DENIED
        | code::PRIVILEGE_MISSING => denied(settings, said(), mend_grants(settings)),
        code::TLS_REQUIRED => Error::Requirement {
            message: format!("{} takes encrypted connections only", settings.address()),
            mend: "set ssl-mode=required here".to_owned(),
        },
        code::BAD_DATABASE => Error::Setting(said()),
        code::TOO_MANY_CONNECTIONS
        | code::TOO_MANY_OF_USER
        | code::USER_LIMIT
        | code::SHUTDOWN
        | code::HOST_BLOCKED
        | code::INTERRUPTED
        | code::KILLED
        | code::FATAL_READING_BINLOG => unreachable(settings, said()),
        _ => statement_error(doing, said()),
    }
}

fn denied(settings: &MysqlSettings, message: String, mend: String) -> Error {
    Error::AccessDenied { address: settings.address(), user: settings.user.clone(), message, mend }
}

fn statement_error(doing: &str, message: String) -> Error {
    let statement = doing.chars().take(200).collect();
    Error::Statement { statement, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_names_its_pages() {
        let error = std::io::Error::other(
            "peer closed connection without sending TLS close_notify: \
             https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof",
        );
        let settings = MysqlSettings::default();
        let shown = client_error(&settings, "connecting", mysql::Error::IoError(error)).to_string();
        let expected = "cannot reach 127.0.0.1:3306: peer closed connection without sending TLS \
                        close_notify";
        assert_eq!(shown, expected);
    }

    #[test]
    fn grants_name_accounts_as_statements_do() {
        let settings = MysqlSettings { database: Some("a`b".to_owned()), ..Default::default() };
        let shown = grants(&settings, &account("o'g", "10.0.0.%"));
        assert!(shown.contains("GRANT SELECT ON `a``b`.* TO 'o''g'@'10.0.0.%';"), "{shown}");
    }
}
