//! What stops the engine for a whole file. What stops it for one kernel is a reason in the report.

use isa::Target;

/// An error that no report can be made for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is no container of device code, or a damaged one.
    #[error("{}{cause}", at(.image))]
    Cubin {
        /// Which image of the file; empty when the file is the image.
        image: String,
        /// What is wrong with it.
        cause: cubin::CubinError,
    },
    /// The program was built without the target's tables.
    #[error("{}{cause}", at(.image))]
    Isa {
        /// Which image of the file.
        image: String,
        /// Says how to build with them.
        cause: isa::IsaError,
    },
    /// The file holds no device code at all.
    #[error("no device code in this file: no cubin, fatbin or embedded image with machine code was found")]
    NoImages,
    /// `--image` names none of the images.
    #[error("has no image {number}{}; `sass2mlir info` numbers the images", wanted.map_or(String::new(), |t| format!(" for {t}")))]
    NoImage {
        /// What was asked for, counted from 1.
        number: usize,
        /// The target that was asked for besides.
        wanted: Option<Target>,
    },
    /// A kernel is asked for that is not there.
    #[error("image {image} of this file has no kernel {name}")]
    NoKernel {
        /// Position of the image in the file.
        image: usize,
        /// The kernel's name.
        name: String,
    },
    /// `--arch` and the file disagree.
    #[error("holds code for {found}, not for {wanted}; give --arch {first} or another file")]
    WrongTarget {
        /// What was asked for.
        wanted: Target,
        /// What is there, as `sm_86, sm_87`.
        found: String,
        /// One of them.
        first: Target,
    },
}

/// `image: ` before a message, when the image is not the file.
fn at(image: &str) -> String {
    if image.is_empty() {
        String::new()
    } else {
        format!("{image}: ")
    }
}
