module github.com/soloist-dev/soloist/examples/jobs

go 1.26.0

replace github.com/soloist-dev/soloist => ../..

require github.com/soloist-dev/soloist v0.0.0-00010101000000-000000000000
