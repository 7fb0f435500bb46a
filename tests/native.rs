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

/// The same with requests on two workers in turns: whom a request meets must make no difference.
macro_rules! over_two_workers {
    ($($file:ident { $($story:ident: $policy:ident,)* })*) => {
        mod two_workers {
            $(mod $file {
                $(#[test]
                fn $story() {
                    let policy = crate::stories::policies::$policy;
                    let mut world = crate::harness::world::NativeWorld::with_workers(2, policy);
                    crate::stories::$file::$story(&mut world);
                    world.close();
                })*
            })*
        }
    };
}

stories!(over_two_workers);
