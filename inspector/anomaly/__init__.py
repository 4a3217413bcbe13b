"""What an ordinary episode looks like, and how far one lies from it.

model        what was learnt of a project: read by checks, kept by the store
├── learning     makes it from the last episodes of each environment
│   ├── scaling      the usual location and spread of each feature, environment by environment
│   └── fitting      the forest, by sklearn; in a process of its own
├── oddness      the score of an episode: a forest and a distance
│   └── forest       scored with numpy alone
├── conformal    from scores to p-values, and what may be called unusual
├── windows      what is kept of the last episodes
└── arrays       as bytes
features     the shape of an episode in numbers, and in words
├── walking      counts them
└── pointing     where they are to be seen
"""
