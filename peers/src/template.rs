//! The template of a data directory: one per kind of server, created once and copied for every
//! server.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};
use mysql::prelude::Queryable;

use crate::{
    Kind, binaries,
    server::{FOLLOWER_PASSWORD, FOLLOWER_USER, Server},
};

/// The name of its folder in the cache. A changed recipe needs another name.
const NAME: &str = "template-1";

/// Creates the data directory of a new server.
pub fn copy_to(kind: Kind, data: &Path) -> Result<()> {
    let template = made(kind)?;
    run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(&template).arg(data))?;
    // Every server needs its own UUID, so the template's is removed.
    match fs::remove_file(data.join("auto.cnf")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The template. If it is missing, one process at a time creates it: two MariaDBs that create
/// system tables at the same moment disturb each other.
fn made(kind: Kind) -> Result<PathBuf> {
    let directory = kind.directory()?;
    let template = directory.join(NAME);
    if template.exists() {
        return Ok(template);
    }
    fs::create_dir_all(&directory)?;
    let lock = File::create(directory.join("template.lock"))?;
    lock.lock()?;
    if !template.exists() {
        let work = tempfile::tempdir_in(&directory)?;
        let data = work.path().join("data");
        initialise(kind, work.path(), &data)
            .with_context(|| format!("cannot make {}", template.display()))?;
        fs::rename(&data, &template)?;
    }
    Ok(template)
}

fn initialise(kind: Kind, work: &Path, data: &Path) -> Result<()> {
    let errors = work.join("error.log");
    match kind {
        Kind::MariaDb1011 | Kind::MariaDb118 => bootstrap(kind, data, &errors)?,
        Kind::MySql97 => run(binaries::server(kind, data, &errors)?
            .args(["--initialize-insecure", "--innodb-redo-log-capacity=8M"]))?,
        Kind::MySql56 => {
            let shipped = kind.root()?.join("data/mysql");
            run(Command::new("cp").args(["-r", "--no-preserve=ownership"]).arg(shipped).arg(data))?;
        }
    }
    // The first start writes what every later start would otherwise have to write.
    let options = match kind {
        Kind::MariaDb1011 | Kind::MariaDb118 => &["--skip-log-bin"][..],
        Kind::MySql97 | Kind::MySql56 => &["--skip-log-bin", "--gtid-mode=OFF"],
    };
    let mut server = Server::start_in(kind, work, options)?;
    let mut connection = server.connect()?;
    if kind == Kind::MySql56 {
        connection.query_drop("DELETE FROM mysql.user WHERE user = '' OR host <> 'localhost'")?;
        connection.query_drop("FLUSH PRIVILEGES")?;
    }
    let user = format!("'{FOLLOWER_USER}'@'%'");
    connection.query_drop(format!("CREATE USER {user} IDENTIFIED BY '{FOLLOWER_PASSWORD}'"))?;
    connection.query_drop(format!(
        "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}"
    ))?;
    drop(connection);
    server.stop()
}

/// Creates the system tables by feeding the statements for them to a server without them.
fn bootstrap(kind: Kind, data: &Path, errors: &Path) -> Result<()> {
    fs::create_dir_all(data)?;
    let root = kind.root()?;
    let (share, prefix) = match kind {
        Kind::MariaDb118 => (root.join("share/mariadb"), "mariadb"),
        _ => (root.join("share/mysql"), "mysql"),
    };
    let mut sql = b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n".to_vec();
    for name in [
        format!("{prefix}_system_tables.sql"),
        format!("{prefix}_performance_tables.sql"),
        format!("{prefix}_system_tables_data.sql"),
        "maria_add_gis_sp_bootstrap.sql".to_owned(),
        format!("{prefix}_sys_schema.sql"),
    ] {
        let file = share.join(name);
        sql.extend(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    let input = data.with_extension("sql");
    File::create(&input)?.write_all(&sql)?;
    let mut command = binaries::server(kind, data, errors)?;
    command.args(["--bootstrap", "--skip-log-bin", "--skip-grant-tables"]);
    command.args(["--innodb-log-file-size=16M", "--max-allowed-packet=8M"]);
    command.arg(format!("--tmpdir={}", data.display()));
    run(command.stdin(Stdio::from(File::open(&input)?)))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
