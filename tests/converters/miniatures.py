"""Each data set in miniature, as it is on disk: names, folders, quirks of the tables, transfer syntaxes."""

import csv
import gzip
import plistlib
from collections import defaultdict
from pathlib import Path

import numpy as np
from dicom_files import mammogram, save
from PIL import Image
from pydicom.uid import JPEG2000Lossless, RLELossless, generate_uid
from sof3 import encode

SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"
FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "cbis-ddsm"
REDUCED = Path(__file__).parents[1] / "data" / "cbis-ddsm"


def breast(rows, columns, side, top=4000, dtype=np.uint16):
    """A bright half ellipse on black; the chest wall is on the left for a left breast."""
    y, x = np.mgrid[:rows, :columns]
    x = x if side[0].upper() == "L" else columns - 1 - x
    inside = ((y - rows / 2) / (0.45 * rows)) ** 2 + (x / (0.8 * columns)) ** 2 < 1
    texture = (13 * x + 7 * y) % 50
    return np.where(inside, top // 2 + texture, 0).astype(dtype)


def mask_of(box, rows, columns, value=255):
    x_min, y_min, x_max, y_max = box
    mask = np.zeros((rows, columns), np.uint8)
    mask[y_min:y_max, x_min:x_max] = value
    return mask


def write_csv(path, rows, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), **options)
        writer.writeheader()
        writer.writerows(rows)
    return path


class CbisDdsm:
    """CBIS-DDSM in the layout of the first downloader ("nbia"), of the later one ("tcia"), or as "jpeg"."""

    def __init__(self, folder, layout="nbia", size=(96, 72)):
        self.folder, self.layout, self.size = Path(folder), layout, size
        self.rows = defaultdict(list)
        self.images = {}
        self.tags = []

    def image(self, patient, side, view, split="Test", kind="Mass", pixels=None):
        """Write a full image, once; returns its path in the tables."""
        name = f"{kind}-{split}_{patient}_{side}_{view}"
        if name not in self.images:
            pixels = breast(*self.size, side) if pixels is None else pixels
            self.images[name] = self._series(name, "full mammogram images", [(pixels, view)], side)[0]
        return self.images[name]

    def mass(self, patient, side, view, number, box, split="Test", kind="Mass", **changes):
        """A row, its image, and one series with the crop and the mask in it.

        Args: `mask_first` puts the mask before the crop, `mask` replaces it, `described` is the series
        description; the rest changes the cells of the row.
        """
        mask_first, mask = changes.pop("mask_first", False), changes.pop("mask", None)
        image = self.image(patient, side, view, split, kind)
        x_min, y_min, x_max, y_max = box
        crop = breast(*self.size, side)[y_min:y_max, x_min:x_max]
        mask = mask_of(box, *self.size) if mask is None else mask
        name = f"{kind}-{split}_{patient}_{side}_{view}_{number}"
        files = [(mask, ""), (crop, "")] if mask_first else [(crop, ""), (mask, "")]
        first, second = self._series(name, changes.pop("described", ""), files, side)
        # The table assumes that the crop comes first, and is wrong if it does not.
        row = {
            "patient_id": patient,
            ("breast_density" if kind == "Mass" else "breast density"): "3",
            "left or right breast": side,
            "image view": view,
            "abnormality id": number,
            "abnormality type": "mass" if kind == "Mass" else "calcification",
            "mass shape": "OVAL",
            "mass margins": "CIRCUMSCRIBED",
            "assessment": "4",
            "pathology": "BENIGN_WITHOUT_CALLBACK",
            "subtlety": "3",
            "image file path": image,
            "cropped image file path": first,
            "ROI mask file path": second + "\n",
        }
        self.rows[kind.lower(), split].append(row | changes)

    def tables(self, old=False):
        """Write the tables, in the current schema or in the old one."""
        names = {
            "left or right breast": "side",
            "image view": "view",
            "abnormality id": "abn_num",
            "image file path": "od_img_path",
            "cropped image file path": "od_crop_path",
            "ROI mask file path": "mask_path",
        }
        for (kind, split), rows in self.rows.items():
            part = {"Training": "train", "Test": "test"}[split]
            if old:
                rows = [{names.get(key, key): value for key, value in row.items()} for row in rows]
            write_csv(self._tables / f"{kind}_case_description_{part}_set.csv", rows)
        if self.tags:
            write_csv(self._tables / "dicom_info.csv", self.tags)
        return self.folder

    @property
    def _tables(self):
        return self.folder / "csv" if self.layout == "jpeg" else self.folder

    def _series(self, name, description, files, side):
        study, series = generate_uid(), generate_uid()
        paths = []
        for number, (pixels, view) in enumerate(files):
            paths.append(f"{name}/{study}/{series}/{number:06d}.dcm")
            if self.layout == "jpeg":
                self._jpeg(name, description, pixels, view, side, series)
                continue
            if self.layout == "nbia":
                file = self.folder / name / study / series / f"{number:06d}.dcm"
            else:
                words = description or "ROI mask images"
                place = f"10-04-2016-DDSM-NA-{study[-5:]}/1.000000-{words}-{series[-5:]}"
                file = self.folder / "CBIS-DDSM" / name / place / f"1-{number + 1}.dcm"
            file.parent.mkdir(parents=True, exist_ok=True)
            dataset = mammogram(
                pixels,
                SOPClassUID=SECONDARY_CAPTURE,
                PatientID=name,
                StudyInstanceUID=study,
                SeriesInstanceUID=series,
                SeriesDescription=description,
                ImageLaterality=None,
                Laterality=side[0],
                ViewPosition=None,
                ImagerPixelSpacing=None,
                BitsStored=8 * pixels.dtype.itemsize,
            )
            if view:
                dataset.PatientOrientation = view
            if pixels.dtype == np.uint16:
                dataset.compress(RLELossless)
            save(file, dataset)
        return paths

    def _jpeg(self, name, description, pixels, view, side, series):
        """The image in 8 bits with the losses of JPEG, and its row of tags; numbers go on across series."""
        grey = pixels if pixels.dtype == np.uint8 else (pixels // 16).astype(np.uint8)
        path = f"{series}/1-{len(self.tags):03d}"
        file = self.folder / "jpeg" / f"{path}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(grey).save(file, quality=75)
        self.tags.append(
            {
                "file_path": f"CBIS-DDSM/dicom/{path}.dcm",
                "image_path": f"CBIS-DDSM/jpeg/{path}.jpg",
                "Columns": grey.shape[1],
                "Laterality": side[0],
                "Modality": "MG",
                "PatientID": name,
                "PatientOrientation": view,
                "Rows": grey.shape[0],
                "SeriesDescription": description,
                "SeriesInstanceUID": series,
            }
        )


def chain(box):
    """The outline of a box of pixels as DDSM writes it: from its first corner, clockwise."""
    x_min, y_min, x_max, y_max = box
    width, height = x_max - 1 - x_min, y_max - 1 - y_min
    codes = [2] * width + [4] * height + [6] * width + [0] * height
    return f"{x_min} {y_min} {' '.join(map(str, codes))} #"


def overlay(*abnormalities):
    """An `.OVERLAY` file; each abnormality is (lines of LESION_TYPE, outline)."""
    lines = [f"TOTAL_ABNORMALITIES {len(abnormalities)}"]
    for number, (types, outline) in enumerate(abnormalities, start=1):
        lines += [f"ABNORMALITY {number}", *[f"LESION_TYPE {words}" for words in types]]
        lines += ["ASSESSMENT 4 ", "SUBTLETY 3 ", "PATHOLOGY MALIGNANT ", "TOTAL_OUTLINES 1 "]
        lines += ["BOUNDARY ", outline]
    return "\n".join(lines) + "\n"


MASS = "MASS SHAPE IRREGULAR MARGINS SPICULATED"
CALCIFICATION = "CALCIFICATION TYPE PLEOMORPHIC DISTRIBUTION CLUSTERED"


class Ddsm:
    """DDSM: `cases/<volume>/case<number>/` with one `.ics`, and a file or two for each film."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def case(self, case_id, films, digitizer="LUMISYS LASER", size=(60, 40), **changes):
        """Write a case; `films` has, by name, the text of its overlay or None. Returns the folder."""
        number = case_id.split("_")[1]
        folder = self.folder / "cases" / "cancers" / "cancer_01" / f"case{number}"
        folder.mkdir(parents=True)
        rows, columns = size
        lines = ["ics_version 1.0", f"filename {case_id.replace('_', '-')}", "DATE_OF_STUDY 2 7 1995"]
        lines += [f"PATIENT_AGE {changes.get('age', 42)}", "FILM", "FILM_TYPE REGULAR", "DENSITY 3"]
        lines += ["DATE_DIGITIZED 7 22 1997", f"DIGITIZER {digitizer}", "SEQUENCE"]
        for name, text in films.items():
            flag = changes.get("flags", {}).get(name, "NON_OVERLAY" if text is None else "OVERLAY")
            lines.append(
                f"{name} LINES {rows} PIXELS_PER_LINE {columns} BITS_PER_PIXEL 12 RESOLUTION 50 {flag}"
            )
            (folder / f"{case_id}.{name}.LJPEG").write_bytes(encode(self.grey(name, size), 12, 1, True))
            if text is not None:
                (folder / f"{case_id}.{name}.OVERLAY").write_text(text)
        (folder / f"{case_id.replace('_', '-')}.ics").write_text("\n".join(lines) + "\n")
        return folder

    @staticmethod
    def grey(name, size):
        """The 12-bit values of a film."""
        return (breast(*size, name, top=3600) + 200).astype(np.uint16)


def zip_in_place(file):
    """Gzip a file and keep its name, as in some copies of DDSM."""
    file.write_bytes(gzip.compress(file.read_bytes()))


def outline_file(rois):
    """An INbreast XML of (name, points)."""
    entries = [
        {
            "Area": 1.0,
            "IndexInImage": index,
            "Name": name,
            "NumberOfPoints": len(points),
            "Point_mm": [f"({x * 0.07:f}, {y * 0.07:f}, 0.000000)" for x, y in points],
            "Point_px": [f"({x:f}, {y:f})" for x, y in points],
            "Type": 15,
        }
        for index, (name, points) in enumerate(rois)
    ]
    return plistlib.dumps({"Images": [{"ImageIndex": 0, "NumberOfROIs": len(rois), "ROIs": entries}]})


def ring(box, points=12):
    """Points on an ellipse that touches the inside of all four edges of a box of pixels."""
    x_min, y_min, x_max, y_max = box
    angle = np.linspace(0, 2 * np.pi, points, endpoint=False)
    x = (x_min + x_max - 1) / 2 + (x_max - 1 - x_min) / 2 * np.cos(angle) + 0.4
    y = (y_min + y_max - 1) / 2 + (y_max - 1 - y_min) / 2 * np.sin(angle) + 0.4
    return list(zip(x.round(4), y.round(4), strict=True))


class Inbreast:
    """INbreast: AllDICOMs, AllXML, and INbreast.csv with semicolons."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.rows = []
        for name in ("AllDICOMs", "AllXML"):
            (self.folder / name).mkdir(parents=True)

    def image(self, number, patient, side, view, rois=None, date="200802", size=(90, 60), **cells):
        """An image, its outlines if `rois` is given, and its row."""
        short = {"MLO": "ML", "CC": "CC"}[view]
        file = self.folder / "AllDICOMs" / f"{number}_{patient}_MG_{side}_{short}_ANON.dcm"
        save(
            file,
            mammogram(breast(*size, side), ImageLaterality=side, ViewPosition=short, PatientID="removed"),
        )
        if rois is not None:
            (self.folder / "AllXML" / f"{number}.xml").write_bytes(outline_file(rois))
        row = {"Patient ID": "removed", "Patient age": "removed", "Laterality": side, "View": view}
        row |= {"Acquisition date": date, "File Name": number, "ACR": 2, "Bi-Rads": "4a"}
        self.rows.append(row | cells)
        return file

    def table(self):
        """Write the table; returns the folder."""
        write_csv(self.folder / "INbreast.csv", self.rows, delimiter=";")
        return self.folder


class VindrMammo:
    """VinDr-Mammo: images/<study>/<image>.dicom in JPEG 2000, and finding_annotations.csv."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.rows = []

    def image(self, study, image, side, view, findings=(), split="training", size=(90, 60), **cells):
        """An image; each finding is (categories, box)."""
        file = self.folder / "images" / study / f"{image}.dicom"
        file.parent.mkdir(parents=True, exist_ok=True)
        dataset = mammogram(breast(*size, side), ImageLaterality=side, ViewPosition=view)
        dataset.compress(JPEG2000Lossless)
        save(file, dataset)
        for categories, box in findings or [(["No Finding"], ("", "", "", ""))]:
            row = {"study_id": study, "series_id": f"s{image}", "image_id": image, "laterality": side}
            row |= {"view_position": view, "height": size[0], "width": size[1]}
            row |= {"breast_birads": "BI-RADS 4", "breast_density": "DENSITY C"}
            row |= {"finding_categories": str(categories), "finding_birads": "BI-RADS 4"}
            row |= dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)) | {"split": split}
            self.rows.append(row | cells)
        return file

    def table(self):
        """Write the table; returns the folder."""
        write_csv(self.folder / "finding_annotations.csv", self.rows)
        return self.folder
