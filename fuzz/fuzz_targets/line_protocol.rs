//! Any bytes in any chunks: frames are the pieces between CRLFs, commands or one-line errors come of
//! them. The first byte is the size of the chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_protocol::line::{FrameLimits, FrameReader, ParseLimits, parse, parse_write, reply};

fuzz_target!(|input: &[u8]| {
    let Some((chunk, bytes)) = input.split_first() else { return };
    let limits = FrameLimits { frame_bytes: 4096, pending_frames: 4, pending_bytes: 4096 };
    let mut reader = FrameReader::new(limits);
    for mut chunk in bytes.chunks(usize::from(*chunk).max(1)) {
        while !chunk.is_empty() {
            let Ok(taken) = reader.push(chunk) else { return };
            chunk = &chunk[taken..];
            while let Some(frame) = reader.next_frame() {
                answer(frame);
            }
        }
    }
});

fn answer(frame: &[u8]) {
    assert!(!frame.windows(2).any(|end| end == b"\r\n"));
    for limits in [ParseLimits::default(), ParseLimits::mygramdb()] {
        if let Err(error) = parse(frame, &limits) {
            let mut out = Vec::new();
            reply::write_error(&mut out, &error);
            assert!(out.starts_with(b"ERROR ") && !out.contains(&b'\n'));
        }
    }
    let _ = parse_write(frame);
}
