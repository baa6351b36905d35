//! Nothing: cargo wants a program or a library in a package that names dependencies.
