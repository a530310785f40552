//! Queries per second over several connections, each with one request at a time.
//!
//! One thread per CPU drives its share of the connections in rounds: it writes a request to each of them, then reads a
//! reply from each. That costs the client two system calls per reply and few context switches, so that the server is
//! the bottleneck. The same is measured against a thread that only sends a reply of the same size: the most this
//! machine can do.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use remora_engine::TextQuery;

use super::{Server, TABLE};
use crate::{
    measure::{microseconds, processors},
    peers::{count_request, search_request},
    report::Throughput,
};

/// The numbers of connections.
const CONNECTIONS: [usize; 3] = [1, 4, 16];
/// The query, the same as in the published figures.
const QUERY: &str = "algorithm";
/// How long each measurement takes.
const TIME: Duration = Duration::from_secs(3);

/// Measures SEARCH and COUNT over each number of connections.
pub fn throughput(server: &Server) -> Result<Vec<Throughput>> {
    let query = TextQuery::Term(QUERY.to_owned());
    let mut figures = Vec::new();
    for (name, request) in
        [("SEARCH", search_request(TABLE, &query)), ("COUNT", count_request(TABLE, &query))]
    {
        for connections in CONNECTIONS {
            let before = server.processor().precise();
            let start = Instant::now();
            let replies = replies(server.address(), &request, connections)?;
            let per_second = replies as f64 / start.elapsed().as_secs_f64();
            let cpu = before.zip(server.processor().precise());
            figures.push(Throughput {
                request: format!("{name} {QUERY}"),
                connections,
                per_second,
                server_cpu_us: cpu.map(|(before, after)| {
                    microseconds(after.saturating_sub(before)) / replies.max(1) as f64
                }),
            });
        }
    }
    for connections in CONNECTIONS {
        let start = Instant::now();
        let replies = echoes(connections, &search_request(TABLE, &query), server.address())?;
        let per_second = replies as f64 / start.elapsed().as_secs_f64();
        let request = "(nothing but an echo)".to_owned();
        figures.push(Throughput { request, connections, per_second, server_cpu_us: None });
    }
    Ok(figures)
}

/// The number of replies in [`TIME`] from threads, one per connection, that answer every request with the bytes that
/// the server at `address` once replied.
fn echoes(connections: usize, request: &[u8], address: &str) -> Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request)?;
    let mut reply = Vec::new();
    read_reply(&mut stream, &mut vec![0; 1 << 14], &mut reply)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::scope(|scope| {
        let reply = &reply;
        let echoing = scope.spawn(move || -> Result<()> {
            for _ in 0..connections {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                scope.spawn(move || echo(stream, reply));
            }
            Ok(())
        });
        let replies = replies(&address, request, connections)?;
        match echoing.join() {
            Ok(outcome) => outcome.map(|()| replies),
            Err(_) => bail!("the echo ended early"),
        }
    })
}

/// Replies until the client disconnects.
fn echo(mut stream: TcpStream, reply: &[u8]) {
    let mut buffer = vec![0; 1 << 14];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
        if stream.write_all(reply).is_err() {
            return;
        }
    }
}

/// The number of replies on all connections in [`TIME`].
fn replies(address: &str, request: &[u8], connections: usize) -> Result<u64> {
    let threads = processors().min(connections);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let share = (connections + thread) / threads;
                scope.spawn(move || rounds(address, request, share))
            })
            .collect();
        let mut replies = 0;
        for worker in workers {
            match worker.join() {
                Ok(count) => replies += count?,
                Err(_) => bail!("a client thread ended early"),
            }
        }
        Ok(replies)
    })
}

fn rounds(address: &str, request: &[u8], connections: usize) -> Result<u64> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let mut buffer = vec![0; 1 << 14];
    let mut reply = Vec::new();
    let mut replies = 0;
    let start = Instant::now();
    while start.elapsed() < TIME {
        for stream in &mut streams {
            stream.write_all(request)?;
        }
        for stream in &mut streams {
            reply.clear();
            read_reply(stream, &mut buffer, &mut reply)?;
            replies += 1;
        }
    }
    Ok(replies)
}

fn read_reply(stream: &mut TcpStream, buffer: &mut [u8], reply: &mut Vec<u8>) -> Result<()> {
    loop {
        let count = stream.read(buffer)?;
        let part = buffer.get(..count).unwrap_or_default();
        if part.is_empty() || (reply.is_empty() && !part.starts_with(b"OK")) {
            bail!("the server closed the connection or refused: {}", String::from_utf8_lossy(part));
        }
        reply.extend_from_slice(part);
        if part.ends_with(b"\n") {
            return Ok(());
        }
    }
}
