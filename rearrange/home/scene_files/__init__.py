"""Files of a Habitat scene data set, read without a simulator: scenes, templates, URDF documents, meshes."""
