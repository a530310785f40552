//! MD5 (RFC 1321) for MD5(), which old applications use as a checksum. It is not secure.

const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// The rotation of each step of a round.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
const BLOCK: usize = 64;

/// The MD5 digest.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut state = START;
    let whole = bytes.len() / BLOCK * BLOCK;
    let (blocks, rest) = bytes.split_at(whole);
    blocks.chunks(BLOCK).for_each(|block| step(&mut state, block));
    let mut last = rest.to_vec();
    last.push(0x80);
    while last.len() % BLOCK != BLOCK - 8 {
        last.push(0);
    }
    last.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    last.chunks(BLOCK).for_each(|block| step(&mut state, block));
    let mut out = [0; 16];
    let all = state.iter().flat_map(|word| word.to_le_bytes());
    out.iter_mut().zip(all).for_each(|(slot, byte)| *slot = byte);
    out
}

fn step(state: &mut [u32; 4], block: &[u8]) {
    let word = |at: usize| {
        let bytes = block.get(at * 4..at * 4 + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default())
    };
    let [mut a, mut b, mut c, mut d] = *state;
    for at in 0..BLOCK {
        let (mixed, place) = match at / 16 {
            0 => ((b & c) | (!b & d), at),
            1 => ((d & b) | (!d & c), (5 * at + 1) % 16),
            2 => (b ^ c ^ d, (3 * at + 5) % 16),
            _ => (c ^ (b | !d), 7 * at % 16),
        };
        let turn = TURNS.get(at / 16).and_then(|round| round.get(at % 4)).copied().unwrap_or(0);
        let sum = a.wrapping_add(mixed).wrapping_add(sine(at)).wrapping_add(word(place));
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(turn)));
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d]) {
        *sum = sum.wrapping_add(part);
    }
}

/// The constant of a step, which the RFC derives from sines.
fn sine(at: usize) -> u32 {
    SINES.get(at).copied().unwrap_or(0)
}

static SINES: std::sync::LazyLock<Vec<u32>> = std::sync::LazyLock::new(|| {
    let of = |at: u32| (f64::from(at).sin().abs() * 4_294_967_296.0) as u32;
    (1..=64).map(of).collect()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meaning::encoding::hex;

    #[test]
    fn digests_are_those_of_the_standard() {
        let shown = |text: &str| hex(&digest(text.as_bytes())).to_lowercase();
        assert_eq!(shown(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(shown("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let digits = "1234567890".repeat(8);
        assert_eq!(shown(&digits), "57edf4a22be3c955ac49da2e2107b67a");
        assert_eq!(shown(&"a".repeat(55)), "ef1772b6dff9a122358552954ad0df65");
        assert_eq!(shown(&"a".repeat(56)), "3b0c8ac703f828b04c6c197006d17218");
    }
}
