//! The command lines of the servers' programs. A server reads no configuration but what it is given
//! here.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Result;

use crate::Kind;

/// The command that runs a server over a data directory and appends its errors to a file.
pub fn server(kind: Kind, data: &Path, errors: &Path) -> Result<Command> {
    let root = kind.root()?;
    let path = |name: &str| root.join(name).display().to_string();
    let mut command = match kind {
        Kind::MariaDb1011 => Command::new(path("sbin/mariadbd")),
        Kind::MariaDb118 => under_own_loader(&root, "sbin/mariadbd"),
        Kind::MySql97 => under_own_loader(&root, "sbin/mysqld"),
        Kind::MySql56 => {
            let mut command = Command::new(path("mysqld"));
            command.env("LD_LIBRARY_PATH", &root);
            command
        }
    };
    command.args(["--no-defaults", "--user=root"]);
    command.arg(format!("--basedir={}", root.display()));
    match kind {
        Kind::MariaDb1011 => {}
        Kind::MariaDb118 => {
            command.arg(format!("--plugin-dir={}", path("lib/mysql/plugin")));
            command.arg(format!("--lc-messages-dir={}", path("share/mariadb")));
            command.arg(format!("--character-sets-dir={}", path("share/mariadb/charsets")));
        }
        Kind::MySql97 => {
            command.arg(format!("--plugin-dir={}", path("lib/mysql/plugin")));
            command.arg(format!("--lc-messages-dir={}", path("share/mysql")));
            command.arg(format!("--character-sets-dir={}", path("share/mysql/charsets")));
            command.args(["--secure-file-priv=NULL", "--mysqlx=OFF"]);
        }
        Kind::MySql56 => {
            command.arg(format!("--lc-messages-dir={}", path("share")));
            command.arg(format!("--character-sets-dir={}", path("share/charsets")));
        }
    }
    command
        .arg(format!("--datadir={}", data.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::options().create(true).append(true).open(errors)?);
    Ok(command)
}

/// A command that runs a program with the loader and the libraries it was unpacked with.
fn under_own_loader(root: &Path, program: &str) -> Command {
    let libraries = root.join("lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(root.join(program));
    command
}
