//! The stories, told to a real Envoy that runs the built module, and what only that one can show.

mod e2e;
#[macro_use]
mod stories;

macro_rules! on_envoy {
    ($($file:ident { $($story:ident: $policy:ident,)* })*) => {
        $(mod $file {
            $(#[test]
            fn $story() {
                let mut world = crate::e2e::RealWorld::start(crate::stories::policies::$policy);
                crate::stories::$file::$story(&mut world);
                world.close();
            })*
        })*
    };
}

stories!(on_envoy);
