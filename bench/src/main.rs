//! The measurements.
fn main() {}
