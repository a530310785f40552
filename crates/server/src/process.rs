//! Memory statistics of this process and its machine, from /proc.

/// Memory in bytes; 0 if it is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryFigures {
    /// The resident memory of this process.
    pub resident: u64,
    /// The peak of the resident memory.
    pub resident_peak: u64,
    /// The machine's memory.
    pub system_total: u64,
    /// The machine's available memory.
    pub system_available: u64,
}

impl MemoryFigures {
    /// Reads the values; costs reading two small files.
    pub(crate) fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let machine = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            resident: kilobytes(&status, "VmRSS:"),
            resident_peak: kilobytes(&status, "VmHWM:"),
            system_total: kilobytes(&machine, "MemTotal:"),
            system_available: kilobytes(&machine, "MemAvailable:"),
        }
    }

    /// The used share of the machine's memory, 0 to 1.
    pub(crate) fn usage_ratio(&self) -> Option<f64> {
        let used = self.system_total.saturating_sub(self.system_available);
        (self.system_total > 0).then(|| used as f64 / self.system_total as f64)
    }
}

/// The bytes in a line `label   123 kB`.
fn kilobytes(text: &str, label: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let figures = MemoryFigures::read();
        assert!(figures.resident > 0 && figures.system_total >= figures.resident);
        assert!(figures.resident_peak >= figures.resident / 2);
        assert!(figures.usage_ratio().is_some_and(|usage| usage > 0.0 && usage < 1.0));
        assert_eq!(kilobytes("VmRSS:\t  12 kB\n", "VmRSS:"), 12 << 10);
    }
}
