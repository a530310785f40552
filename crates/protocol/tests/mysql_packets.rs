//! Arbitrary packets of a MySQL client get an answer or an error and never cause a panic. The fuzz target
//! `mysql_packets` checks the same.

use proptest::prelude::*;
use remora_mysql::Charset;
use remora_protocol::mysql::{
    Command, PacketReader, PacketWriter, Parameters,
    auth::{NONCE_BYTES, Nonce, Password, Plugin, Verdict},
    compress::{Algorithm, Compressor},
    handshake::{Hello, Login, offered},
};

const LIMIT: usize = 1 << 16;

/// The first byte of a command, often a known one, and random bytes after it.
fn command() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![0_u8..0x20, any::<u8>()];
    (code, prop::collection::vec(any::<u8>(), 0..80)).prop_map(|(code, mut rest)| {
        rest.insert(0, code);
        rest
    })
}

fn read(message: &[u8]) {
    let offer = offered(true, true);
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
        command => assert!(!command.name().is_empty()),
    }
}

/// The messages in a client's bytes, plain or compressed.
fn messages(bytes: &[u8], algorithm: Option<Algorithm>) -> Vec<Vec<u8>> {
    let mut reader = PacketReader::new(LIMIT);
    match algorithm {
        None => reader.room().extend_from_slice(bytes),
        Some(algorithm) => {
            reader.ignore_order();
            let mut compressor = Compressor::new(algorithm);
            compressor.room().extend_from_slice(bytes);
            if compressor.decompress(reader.room(), LIMIT).is_err() {
                return Vec::new();
            }
        }
    }
    let mut messages = Vec::new();
    while let Ok(Some(message)) = reader.next_message() {
        messages.push(message.payload.to_vec());
        reader.expect(0);
    }
    messages
}

proptest! {
    #[test]
    fn any_bytes_are_parsed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for algorithm in [None, Some(Algorithm::Zlib), Some(Algorithm::Zstd(3))] {
            messages(&bytes, algorithm).iter().for_each(|message| read(message));
        }
    }

    #[test]
    fn commands_round_trip(commands in prop::collection::vec(command(), 0..12)) {
        let mut writer = PacketWriter::default();
        for command in &commands {
            writer.set_sequence(0);
            writer.message(|out| out.extend_from_slice(command));
            read(command);
        }
        prop_assert_eq!(&messages(writer.bytes(), None), &commands);
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd(3)] {
            let mut wire = Vec::new();
            Compressor::new(algorithm).compress(writer.bytes(), &mut wire).unwrap();
            prop_assert_eq!(&messages(&wire, Some(algorithm)), &commands);
        }
    }

    #[test]
    fn only_the_correct_response_verifies_a_password(
        answer in prop::collection::vec(any::<u8>(), 0..40),
        nonce in any::<[u8; NONCE_BYTES]>(),
    ) {
        let password = Password::plain(b"geheim");
        let nonce = Nonce::from_random(nonce);
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            prop_assert_eq!(password.check(plugin, &nonce, &answer), Verdict::Wrong);
        }
    }
}
