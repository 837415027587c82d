"""The MONAI Deploy app: from the DICOM files of a study to structured reports, see docs/deployment.md."""
