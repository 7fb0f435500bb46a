//! What only a simulated Envoy can show: settings that break the filter, ends that are hard to bring about, and how
//! deep its actions nest.

mod advice;
mod bursts;
mod calls;
mod chaos;
mod configuration;
mod ends;
mod header_hold;
mod histograms;
mod workers;
