//! From outcomes to a table and a verdict.

pub mod summary;
pub mod table;
pub mod target;
pub mod validity;
