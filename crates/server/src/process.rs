//! Figures of this process and its machine, read from /proc.

/// Memory in bytes; 0 where the system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryFigures {
    /// Resident now.
    pub resident: u64,
    /// Resident at most.
    pub resident_peak: u64,
    /// The machine's memory.
    pub system_total: u64,
    /// What is left of it.
    pub system_available: u64,
}

impl MemoryFigures {
    /// Reads them; costs two small files.
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

    /// The share of the machine's memory that is taken, 0 to 1.
    pub(crate) fn usage_ratio(&self) -> Option<f64> {
        let used = self.system_total.saturating_sub(self.system_available);
        (self.system_total > 0).then(|| used as f64 / self.system_total as f64)
    }
}

/// The bytes of a line `label   123 kB`.
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
