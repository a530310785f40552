//! Prepared statements of the MySQL protocol.

use mysql_common::{
    constants::CapabilityFlags as Capabilities, packets::ComStmtExecuteRequestBuilder,
    proto::MySerialize, value::Value,
};

use remora_protocol::mysql::PacketWriter;

use crate::{
    mysql::{
        client::{Answer, Client, Entry, USUAL},
        connect,
    },
    support::TestServer,
};

const DONE: Answer = Answer::Ok { affected: 0 };

/// A statement's number, its parameters and its columns.
fn prepare(client: &mut Client, text: &str) -> (u32, u16, u16) {
    client.begin();
    client.send(&[b"\x16", text.as_bytes()].concat());
    let ok = client.message().unwrap();
    assert_eq!((ok[0], ok.len()), (0, 12), "{}", String::from_utf8_lossy(&ok));
    let number = |at: usize| u16::from_le_bytes([ok[at], ok[at + 1]]);
    let (columns, parameters) = (number(5), number(7));
    client.skip_columns(usize::from(parameters));
    client.skip_columns(usize::from(columns));
    (u32::from(number(1)), parameters, columns)
}

fn execute_packet(id: u32, values: &[Value], cursor: bool) -> Vec<u8> {
    let (request, _) = ComStmtExecuteRequestBuilder::new(id).build(values);
    let mut packet = Vec::new();
    request.serialize(&mut packet);
    packet[5] = u8::from(cursor);
    packet
}

/// The bytes of rows after the null bitmap, or the first message if there are no rows.
fn execute(client: &mut Client, packet: &[u8]) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    client.begin();
    client.send(packet);
    let first = client.message().unwrap();
    if matches!(first[0], 0 | 0xFF) {
        return Err(first);
    }
    client.skip_columns(usize::from(first[0]));
    Ok(rows(client))
}

fn rows(client: &mut Client) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    loop {
        let message = client.message().unwrap();
        if message[0] == 0xFE && message.len() < 12 {
            client.last_ok = message;
            return rows;
        }
        assert_eq!(message[0], 0);
        rows.push(message[2..].to_vec());
    }
}

fn number_of(error: Result<Vec<Vec<u8>>, Vec<u8>>) -> u16 {
    let error = error.unwrap_err();
    assert_eq!(error[0], 0xFF);
    u16::from_le_bytes([error[1], error[2]])
}

#[test]
fn prepared_values_round_trip() {
    let server = TestServer::start_empty("");
    for more in [Capabilities::empty(), Capabilities::CLIENT_DEPRECATE_EOF] {
        let entry = Entry { capabilities: USUAL | more, ..Entry::default() };
        let mut client = Client::connect(server.sql_address(), &entry).unwrap();
        let (id, parameters, columns) = prepare(&mut client, "SELECT ?");
        assert_eq!((parameters, columns), (1, 1));
        for text in ["a", "日本", ""] {
            let packet = execute_packet(id, &[Value::Bytes(text.into())], false);
            let mut row = vec![text.len() as u8];
            row.extend_from_slice(text.as_bytes());
            assert_eq!(execute(&mut client, &packet).unwrap(), [row]);
        }
        assert_eq!(client.query("SELECT 3").value(), "3");
    }
}

#[test]
fn long_data_packets_are_joined() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    let (id, ..) = prepare(&mut client, "SELECT ?");
    let piece = |text: &[u8]| [&[0x18][..], &id.to_le_bytes(), &[0, 0], text].concat();
    for text in [&b"ab"[..], b"cd"] {
        client.begin();
        client.send(&piece(text));
    }
    // No value stands in the packet.
    let mut packet = execute_packet(id, &[Value::Bytes(Vec::new())], false);
    packet.pop();
    assert_eq!(execute(&mut client, &packet).unwrap(), [b"\x04abcd".to_vec()]);
    client.begin();
    client.send(&piece(b"gone"));
    assert_eq!(client.command(0x1A, &id.to_le_bytes()), DONE);
    assert_eq!(number_of(execute(&mut client, &packet)), 1210);
    assert_eq!(client.query("SELECT 3").value(), "3");
}

#[test]
fn unknown_prepared_statements_are_errors() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    let (id, ..) = prepare(&mut client, "SELECT 1");
    assert_eq!(execute(&mut client, &execute_packet(id, &[], false)).unwrap().len(), 1);
    client.begin();
    client.send(&[&[0x19][..], &id.to_le_bytes()].concat());
    assert_eq!(number_of(execute(&mut client, &execute_packet(id, &[], false))), 1243);
    assert_eq!(client.command(0x1A, &id.to_le_bytes()).error(), 1243);
    assert_eq!(client.command(0x1C, &[id.to_le_bytes(), [9, 0, 0, 0]].concat()).error(), 1243);
    let (id, ..) = prepare(&mut client, "SELECT 1");
    assert_eq!(client.command(0x1C, &[id.to_le_bytes(), [9, 0, 0, 0]].concat()).error(), 1421);
    assert_eq!(client.command(0x1F, b""), DONE);
    assert_eq!(number_of(execute(&mut client, &execute_packet(id, &[], false))), 1243);
}

#[test]
fn buffers_of_all_connections_are_limited() {
    let server = TestServer::start_empty("[sql]\nmax_prepared_statements = 2\n");
    let (mut first, mut second) = (connect(&server), connect(&server));
    let (id, ..) = prepare(&mut first, "SELECT 1");
    prepare(&mut second, "SELECT 1");
    assert_eq!(second.command(0x16, b"SELECT 1").error(), 1461);
    first.begin();
    first.send(&[&[0x19][..], &id.to_le_bytes()].concat());
    assert_eq!(first.query("SELECT 1").value(), "1");
    prepare(&mut second, "SELECT 1");
}

#[test]
fn cursor_is_fetched_in_several_fetches() {
    const CURSOR: u16 = 0x40;
    const LAST_ROW: u16 = 0x80;
    let server = TestServer::start_empty("");
    for more in [Capabilities::empty(), Capabilities::CLIENT_DEPRECATE_EOF] {
        let entry = Entry { capabilities: USUAL | more, ..Entry::default() };
        let mut client = Client::connect(server.sql_address(), &entry).unwrap();
        let (id, ..) = prepare(&mut client, "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3");
        client.begin();
        client.send(&execute_packet(id, &[], true));
        let columns = client.message().unwrap()[0];
        (0..columns).for_each(|_| assert_eq!(client.message().unwrap()[..4], *b"\x03def"));
        client.last_ok = client.message().unwrap();
        assert_eq!((client.last_ok[0], client.status() & CURSOR), (0xFE, CURSOR));
        for (count, flag) in [(2, CURSOR), (1, LAST_ROW), (0, LAST_ROW)] {
            client.begin();
            client.send(&[&[0x1C][..], &id.to_le_bytes(), &[2, 0, 0, 0]].concat());
            assert_eq!(rows(&mut client).len(), count);
            assert_eq!(client.status() & (CURSOR | LAST_ROW), flag);
        }
        assert_eq!(client.query("SELECT 3").value(), "3");
    }
}

#[test]
fn pending_commands_buffer_a_bounded_number_of_rows() {
    let server = TestServer::start_empty("[sql]\nbuffered_mb = 1\n");
    let mut client = connect(&server);
    let text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6) \
                SELECT REPEAT('x', 70000 + i) FROM n";
    let ids: Vec<u32> = (0..8).map(|_| prepare(&mut client, text).0).collect();
    let mut waiting = PacketWriter::default();
    for id in &ids {
        waiting.set_sequence(0);
        waiting.message(|out| out.extend_from_slice(&execute_packet(*id, &[], true)));
    }
    client.send_raw(waiting.bytes());
    let mut answered = 0;
    let error = loop {
        client.reader.expect(1);
        let first = client.message().unwrap();
        if first[0] == 0xFF {
            break u16::from_le_bytes([first[1], first[2]]);
        }
        client.skip_columns(1);
        answered += 1;
    };
    assert_eq!(error, 1041);
    assert!((1..ids.len()).contains(&answered), "{answered}");
    assert_eq!(client.answer(), Answer::Closed);
}
