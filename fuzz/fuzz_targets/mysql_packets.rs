//! Whatever a client of the MySQL protocol sends gives an answer or an error, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_mysql::Charset;
use remora_protocol::mysql::{
    Command, PacketReader, Parameters,
    compress::{Algorithm, Compressor},
    handshake::{Hello, Login, is_old_client, is_tls_request, offered},
};

/// Most bytes of a message here.
const LIMIT: usize = 1 << 16;

/// The messages of plain or compressed bytes, until they end or are wrong.
fn messages(bytes: &[u8], algorithm: Option<Algorithm>, mut see: impl FnMut(&[u8])) {
    let mut reader = PacketReader::new(LIMIT);
    match algorithm {
        None => reader.room().extend_from_slice(bytes),
        Some(algorithm) => {
            reader.ignore_order();
            let mut compressor = Compressor::new(algorithm);
            compressor.room().extend_from_slice(bytes);
            if compressor.decompress(reader.room(), LIMIT).is_err() {
                return;
            }
        }
    }
    while let Ok(Some(message)) = reader.next_message() {
        see(message.payload);
        reader.expect(0);
    }
}

fn read(message: &[u8]) {
    let offer = offered(true, true);
    let _ = (is_tls_request(message), is_old_client(message));
    if let Some(hello) = Hello::parse(message, offer) {
        let _ = hello.compression();
    }
    match Command::parse(message) {
        Command::Execute { parameters, .. } => {
            let mut values = Vec::new();
            for count in [0, 1, 3, 17] {
                let mut bound = Parameters::default();
                bound.add_long(count, 1, b"long");
                if bound.read(parameters, count, Charset::UTF8MB4, &mut values).is_some() {
                    assert_eq!(values.len(), count);
                }
            }
        }
        Command::ChangeUser(packet) => {
            let _ = Login::parse_change(packet, offer);
        }
        command => {
            let _ = command.name();
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    for algorithm in [None, Some(Algorithm::Zlib), Some(Algorithm::Zstd(3))] {
        messages(bytes, algorithm, read);
    }
});
