//! From outcomes to pictures, tables and a verdict.

pub mod axis;
pub mod chart;
mod draw;
pub mod html;
pub mod record;
pub mod run;
pub mod summary;
pub mod validity;
