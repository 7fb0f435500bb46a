//! The stories, told to the very filter code within a simulated Envoy, and what only that one can show.

use sluice as _;

mod harness;
mod simulated;
#[macro_use]
mod stories;

macro_rules! natively {
    ($($file:ident { $($story:ident: $policy:ident,)* })*) => {
        $(mod $file {
            $(#[test]
            fn $story() {
                let mut world = crate::harness::world::NativeWorld::new(crate::stories::policies::$policy);
                crate::stories::$file::$story(&mut world);
                world.close();
            })*
        })*
    };
}

stories!(natively);
