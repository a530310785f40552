//! The processor check, made before anything else runs.

/// The processor feature that the program was built for and this processor lacks, if any.
pub fn missing_features() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if !(std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("popcnt"))
    {
        return Some(
            "remora: this processor lacks AVX2 or BMI2, which this build uses; run it on one made \
             since 2013, or build it with RUSTFLAGS='-C target-cpu=x86-64'",
        );
    }
    None
}
