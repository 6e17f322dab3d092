"""Files of a Habitat scene data set, read without a simulator: the data set, scenes, templates, URDF documents, meshes."""
