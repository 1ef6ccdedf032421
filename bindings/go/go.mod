module sardonyx

go 1.19
