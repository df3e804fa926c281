//! From bytes to device images: one way for a cubin, a fatbin, and a host program or library that holds them.

use cubin::Image;
use cubin::container::{Container, ImageEntry};
use isa::Target;

use crate::Error;

/// A file with its images decompressed.
pub struct Opened<'a> {
    bytes: &'a [u8],
    container: Container<'a>,
    entries: Vec<ImageEntry<'a>>,
}

/// The images of a file that can be read.
pub struct Images<'o> {
    /// Where in the file each is (empty when the file is the image), and the image.
    pub list: Vec<OpenImage<'o>>,
    /// Images that are not for the target asked for, or for a GPU that the project does not know: place and reason.
    pub passed_over: Vec<String>,
}

impl Images<'_> {
    /// Keeps the image of that number, counted from 1 over all images of the file.
    fn keep_number(&mut self, number: usize) -> bool {
        self.list.retain(|image| image.number() == number);
        !self.list.is_empty()
    }

    /// Passes over the images for targets that this program has no tables for, as long as there is one that it has tables
    /// for: a library for many GPUs is of use to a program that was built for one.
    pub fn keep_embedded(&mut self) {
        let missing = |i: &OpenImage<'_>| isa::Isa::for_target(i.image.target()).err();
        if self.list.iter().all(|i| missing(i).is_some()) {
            return;
        }
        for image in &self.list {
            if let Some(why) = missing(image) {
                self.passed_over.push(format!("{}: {why}", image.path));
            }
        }
        self.list.retain(|i| missing(i).is_none());
    }
}

/// Which images of a file are meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Which {
    /// Those for this target; `None`: for any.
    pub arch: Option<Target>,
    /// The one of this number, counted from 1 over all images of the file; `None`: all.
    pub number: Option<usize>,
}

/// One image of a file.
pub struct OpenImage<'o> {
    /// Position among all images of the file.
    pub index: usize,
    /// Where in the file it is; empty when the file is the image.
    pub path: &'o str,
    /// The image.
    pub image: Image<'o>,
}

impl OpenImage<'_> {
    /// Its number for people, counted from 1 over all images of the file.
    pub fn number(&self) -> usize {
        self.index + 1
    }
}

impl<'a> Opened<'a> {
    /// Finds the images and decompresses them.
    pub fn new(bytes: &'a [u8]) -> Result<Opened<'a>, Error> {
        let whole = |cause| Error::Cubin {
            image: String::new(),
            cause,
        };
        let container = Container::parse(bytes).map_err(whole)?;
        let entries = container.images().collect::<Result<Vec<_>, _>>().map_err(whole)?;
        if entries.is_empty() {
            return Err(Error::NoImages);
        }
        Ok(Opened {
            bytes,
            container,
            entries,
        })
    }

    /// The file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads the images that are meant. A file that is one cubin must be readable and for that target; in a
    /// container, images for other targets and other GPUs are passed over, but there must be one that is not.
    pub fn images(&self, which: Which) -> Result<Images<'_>, Error> {
        let Which { arch, number } = which;
        let mut images = Images {
            list: Vec::new(),
            passed_over: Vec::new(),
        };
        let mut others = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let image = match Image::parse(&entry.bytes) {
                Ok(image) => image,
                Err(cause @ cubin::CubinError::UnknownTarget { .. }) if self.entries.len() > 1 => {
                    images.passed_over.push(format!("{}: {cause}", entry.path));
                    continue;
                }
                Err(cause) => {
                    return Err(Error::Cubin {
                        image: entry.path.clone(),
                        cause,
                    });
                }
            };
            if arch.is_some_and(|a| a != image.target()) {
                others.push(image.target());
                continue;
            }
            images.list.push(OpenImage {
                index,
                path: &entry.path,
                image,
            });
        }
        others.sort();
        others.dedup();
        match (arch, others.first()) {
            (Some(wanted), Some(&first)) if images.list.is_empty() => {
                let found = others.iter().map(Target::to_string).collect::<Vec<_>>().join(", ");
                Err(Error::WrongTarget { wanted, found, first })
            }
            _ => match number {
                Some(number) if !images.keep_number(number) => Err(Error::NoImage { number, wanted: arch }),
                _ => Ok(images),
            },
        }
    }

    /// The file with some images replaced, each given as its index and its new bytes. Everything else is byte-identical.
    pub fn rebuild(&self, replaced: &[(usize, Vec<u8>)]) -> Result<Vec<u8>, Error> {
        let borrowed: Vec<(usize, &[u8])> = replaced.iter().map(|(i, b)| (*i, b.as_slice())).collect();
        self.container.rebuild(&borrowed).map_err(|cause| Error::Cubin {
            image: String::new(),
            cause,
        })
    }
}
