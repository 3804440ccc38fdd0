from _arroyo_daemon import main

main()
