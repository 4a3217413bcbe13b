"""Harbor task folders: instruction, image, solution and tests, graded as Harbor grades them."""
